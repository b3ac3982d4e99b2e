import { discoverInstances } from '@rollcall/client/discovery.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Changes } from '../domain/changes.ts';
import type { GraphStore } from '../domain/ports.ts';
import { newsOf, type Sighting, sightingsOf } from './registrations.ts';

export interface DiscoveryDeps {
  /** Base URLs of registries. */
  readonly registries: readonly string[];
  readonly store: Pick<GraphStore, 'outlines'>;
  readonly changes: Changes;
  /** Called when there may be schemas to read. */
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Between comparisons where the registry says nothing. */
const COMPARE_MS = 2000;
/** Of changes that come together, such as a full list. */
const GATHER_MS = 50;
/** Another replica may hear of a registration sooner than this one, which must not take it for gone. */
const ABSENT_MS = 5000;

export interface Discovery extends Actor {
  /** A service as the registry last had it; undefined: it is not registered. A read of memory. */
  readonly sighting: (service: string) => Sighting | undefined;
}

/** Follows the registry's watch, and tells of services with GraphQL that come, change and go. */
export function createDiscovery(deps: DiscoveryDeps): Discovery {
  const { registries, store, changes, onChange, clock, log } = deps;
  const stopping = new AbortController();
  let seen: ReadonlyMap<string, Sighting> = new Map();
  const absentSince = new Map<string, number>();
  let directory: ReturnType<typeof discoverInstances> | undefined;
  let awake = Promise.withResolvers<void>();
  let running: Promise<void> | undefined;

  async function compare(): Promise<void> {
    if (directory === undefined || directory.state() === 'connecting') return;
    const sightings = sightingsOf(directory.list());
    seen = new Map(sightings.map((sighting) => [sighting.service, sighting]));
    const known = await store.outlines();
    // While the watch is down nobody is known to have gone.
    if (directory.state() === 'live') noteAbsent(new Set(sightings.map(({ service }) => service)), known);
    else absentSince.clear();
    const news = newsOf(sightings, known, hasBeenAbsent);
    if (news.length === 0) return;
    await changes.make(news);
    onChange();
  }

  function noteAbsent(present: ReadonlySet<string>, known: readonly { readonly service: string }[]): void {
    for (const { service } of known) {
      if (present.has(service)) absentSince.delete(service);
      else if (!absentSince.has(service)) absentSince.set(service, clock.monotonicMs());
    }
    const services = new Set(known.map(({ service }) => service));
    for (const service of absentSince.keys()) if (!services.has(service)) absentSince.delete(service);
  }

  function hasBeenAbsent(service: string): boolean {
    const since = absentSince.get(service);
    return since !== undefined && clock.monotonicMs() - since >= ABSENT_MS;
  }

  async function follow(): Promise<void> {
    while (!stopping.signal.aborted) {
      awake = Promise.withResolvers();
      try {
        await compare();
      } catch (error) {
        const level = isDatabaseUnavailable(error) ? 'warn' : 'error';
        log[level]({ message: errorMessage(error) }, 'what is registered could not be compared');
      }
      await Promise.race([awake.promise, sleep(COMPARE_MS, stopping.signal)]);
      await sleep(GATHER_MS, stopping.signal);
    }
  }

  return {
    name: 'discovery',
    sighting: (service) => seen.get(service),
    async start() {
      directory = discoverInstances({ servers: registries });
      directory.on('change', () => awake.resolve());
      directory.on('synced', () => awake.resolve());
      directory.on('disconnected', ({ error }) => log.warn({ message: errorMessage(error) }, 'registry watch lost'));
      running = follow();
    },
    async stop() {
      stopping.abort();
      directory?.close();
      await running;
    },
  };
}
