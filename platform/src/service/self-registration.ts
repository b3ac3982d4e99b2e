import { type Registration, register } from '@rollcall/client/registration.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { Capability, RegisteredService } from '@rollcall/client/registry-types.ts';
import { errorMessage } from '../errors.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import { backoffMs, sleep } from '../retry.ts';
import { areHealthy, type HealthPart } from './health.ts';

export interface SelfRegistrationOptions {
  /** Base URLs of registries. */
  readonly registries: readonly string[];
  readonly name: string;
  /** Where the gateway reaches this replica. */
  readonly url: string;
  readonly capabilities: readonly Capability[];
  /** As `kubectl get sreg` shows it. */
  readonly version: string;
  /** What this replica needs, or does without. */
  readonly healthParts: readonly HealthPart[];
  readonly log: Logger;
}

/** Between looks at the replica's own health. */
const HEALTH_INTERVAL_MS = 2000;
/** After reports that the registry has not taken. */
const RETRY = { baseMs: HEALTH_INTERVAL_MS, maxMs: 15_000 };

/**
 * Keeps this replica registered, and the registry told of its health as it changes. Started last and
 * stopped first: nobody is sent here who is not answered. Starting it waits for no registry.
 */
export function selfRegistration(options: SelfRegistrationOptions): Actor {
  const { registries, name, url, capabilities, log } = options;
  const stopping = new AbortController();
  const health = healthReports(options);
  let registration: Registration | undefined;
  let following: Promise<void> | undefined;
  return {
    name: 'registration',
    async start() {
      registration = register({ servers: registries, name, url, capabilities });
      registration.registered.catch(() => undefined);
      registration.on('registered', ({ service, again }) => {
        log.info({ again }, 'registered');
        health.isOf(instanceOf(service));
        reportVersion(options, service).catch((err: unknown) =>
          log.warn({ err }, 'the registry was not told of the version'),
        );
      });
      registration.on('lost', ({ reason }) => {
        // Whoever could not reach the registry may still be known there, and is not registered again then.
        if (reason === 'expired') health.isOf(undefined);
        log.warn({ reason }, 'the registration was lost');
      });
      registration.on('error', ({ error, retryInMs }) =>
        log.warn({ message: errorMessage(error), retryInMs }, 'the registry could not be told'),
      );
      following = health.follow(stopping.signal);
    },
    async stop() {
      stopping.abort();
      await following;
      await registration?.[Symbol.asyncDispose]();
    },
  };
}

type Instance = Pick<RegisteredService, 'service_name' | 'instance_id'>;

function instanceOf({ service_name, instance_id }: RegisteredService): Instance {
  return { service_name, ...(instance_id === undefined ? {} : { instance_id }) };
}

/** Reports what is so whenever it is not what was told last, until the registry has taken it: less often as it fails. */
function healthReports({ registries, healthParts, log }: SelfRegistrationOptions) {
  const client = createRegistryClient({ servers: registries });
  let instance: Instance | undefined;
  let told: boolean | undefined;
  let failures = 0;

  async function report(of: Instance, isWell: boolean, signal: AbortSignal): Promise<void> {
    try {
      const timestamp = new Date().toISOString();
      await client.reportHealth({ ...of, status: isWell ? 'healthy' : 'unhealthy', timestamp }, { signal });
      failures = 0;
      // A registration that is new meanwhile has not been told.
      if (instance === of) told = isWell;
    } catch (err) {
      failures += 1;
      // The registry may have taken it, and died before it said so.
      if (instance === of) told = undefined;
      if (!signal.aborted) log.warn({ err }, 'the registry was not told of the health');
    }
  }

  return {
    /** @param registered undefined: none is. */
    isOf(registered: Instance | undefined): void {
      instance = registered;
      told = undefined;
    },
    async follow(signal: AbortSignal): Promise<void> {
      do {
        const isWell = areHealthy(healthParts);
        if (instance === undefined || told === isWell) failures = 0;
        else await report(instance, isWell, signal);
      } while (await sleep(failures === 0 ? HEALTH_INTERVAL_MS : backoffMs(failures, RETRY), signal));
    },
  };
}

/** Tells people who list what is registered. */
async function reportVersion(
  { registries, version }: SelfRegistrationOptions,
  service: RegisteredService,
): Promise<void> {
  const client = createRegistryClient({ servers: registries });
  const timestamp = new Date().toISOString();
  await client.reportLifecycle({ ...instanceOf(service), event: 'started', timestamp, details: { version } });
}
