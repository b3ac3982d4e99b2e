import type { RegistryClient } from '@rollcall/client/registry-client.ts';
import { RegistryError } from '@rollcall/client/registry-error.ts';
import type { CompositionStatus } from '@rollcall/client/registry-types.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import { CONTROL } from '@rollcall/platform/text-rules.ts';
import type { GraphStore } from '../domain/ports.ts';
import { type Standing, statusOf } from '../domain/subgraphs.ts';
import type { Sighting } from './registrations.ts';

export interface CompositionReportsDeps {
  readonly registry: Pick<RegistryClient, 'reportComposition'>;
  readonly store: Pick<GraphStore, 'standings'>;
  readonly sighting: (service: string) => Sighting | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Between looks at what has changed. */
const LOOK_MS = 2000;
/** A replica of the registry may not have known an instance that it was told of. */
const AGAIN_MS = 60_000;
const RETRY = { baseMs: LOOK_MS, maxMs: 60_000 };
/** Characters. */
const LONGEST_MESSAGE = 1000;
const CONTROLS = new RegExp(`[${CONTROL}]+`, 'gu');

interface Told {
  /** What, and of which instances. */
  readonly key: string;
  readonly atMs: number;
}

/**
 * Tells the registry how each registered service stands with the graph, for people who look at its
 * registration. Every replica does; telling the same again changes nothing there.
 */
export function createCompositionReports(deps: CompositionReportsDeps): Actor {
  const { registry, store, sighting, clock, log } = deps;
  const stopping = new AbortController();
  const told = new Map<string, Told>();
  let running: Promise<void> | undefined;

  /** @throws RegistryError where a service was refused, once it has told of the others; others at once. */
  async function tellAll(): Promise<void> {
    const standings = await store.standings();
    for (const service of told.keys()) if (!standings.has(service)) told.delete(service);
    const refused: RegistryError[] = [];
    for (const [service, standing] of standings) {
      const report = reportOf(standing);
      const instances = sighting(service)?.instances;
      if (report === undefined || instances === undefined) told.delete(service);
      else {
        const refusal = await tell(service, report, instances);
        if (refusal !== undefined) refused.push(refusal);
      }
    }
    const [first] = refused;
    if (first !== undefined) throw first;
  }

  /** @returns why the registry does not take it. @throws where no registry answers. */
  async function tell(
    service: string,
    report: CompositionStatus,
    instances: string,
  ): Promise<RegistryError | undefined> {
    const known = told.get(service);
    const [key, atMs] = [JSON.stringify([report, instances]), clock.monotonicMs()];
    if (known?.key === key && atMs - known.atMs < AGAIN_MS) return undefined;
    // The registry may take it, and its answer be lost.
    told.delete(service);
    try {
      await registry.reportComposition(service, report, { signal: stopping.signal });
    } catch (error) {
      if (!(error instanceof RegistryError) || error.status === undefined) throw error;
      // It is gone, as the registry's watch will say, too.
      if (error.status !== 404) return error;
    }
    told.set(service, { key, atMs });
    return undefined;
  }

  async function follow(): Promise<void> {
    let failures = 0;
    while (await sleep(failures === 0 ? LOOK_MS : backoffMs(failures, RETRY), stopping.signal)) {
      try {
        await tellAll();
        failures = 0;
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        log.warn({ message: errorMessage(error) }, 'the registry was not told of compositions');
      }
    }
  }

  return {
    name: 'composition-reports',
    async start() {
      running = follow();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Pure. Undefined: there is nothing to tell of what is not registered. */
export function reportOf({ isLeftOut, ...standing }: Standing & { readonly isLeftOut: boolean }) {
  if (isLeftOut) return reported('removed', 'Somebody took it out of the graph');
  const status = statusOf(standing);
  if (status === 'stale') return undefined;
  if (status === 'composed') return reported(status, 'Its newest schema is in the graph');
  if (status === 'unreachable')
    return reported(status, standing.failure?.message ?? 'Its schema has not been read yet');
  const [first, ...others] = standing.errors;
  const more = others.length === 0 ? '' : `; and ${others.length} more`;
  return reported(status, `${first?.code}: ${first?.message}${more}`);
}

function reported(status: CompositionStatus['status'], message: string): CompositionStatus {
  return { status, message: message.replace(CONTROLS, ' ').slice(0, LONGEST_MESSAGE).toWellFormed() };
}
