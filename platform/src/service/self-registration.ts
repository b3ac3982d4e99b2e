import { type Registration, register } from '@rollcall/client/registration.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { Capability, RegisteredService } from '@rollcall/client/registry-types.ts';
import { errorMessage } from '../errors.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';

export interface SelfRegistrationOptions {
  /** Base URLs of registries. */
  readonly registries: readonly string[];
  readonly name: string;
  /** Where the gateway reaches this replica. */
  readonly url: string;
  readonly capabilities: readonly Capability[];
  /** As `kubectl get sreg` shows it. */
  readonly version: string;
  readonly log: Logger;
}

/**
 * Keeps this replica registered. Started last and stopped first: nobody is sent here who is not
 * answered. Starting it waits for no registry.
 */
export function selfRegistration(options: SelfRegistrationOptions): Actor {
  const { registries, name, url, capabilities, log } = options;
  let registration: Registration | undefined;
  return {
    name: 'registration',
    async start() {
      registration = register({ servers: registries, name, url, capabilities });
      registration.registered.catch(() => undefined);
      registration.on('registered', ({ service, again }) => {
        log.info({ again }, 'registered');
        reportVersion(options, service).catch((err: unknown) =>
          log.warn({ err }, 'the registry was not told of the version'),
        );
      });
      registration.on('lost', ({ reason }) => log.warn({ reason }, 'the registration was lost'));
      registration.on('error', ({ error, retryInMs }) =>
        log.warn({ message: errorMessage(error), retryInMs }, 'the registry could not be told'),
      );
    },
    async stop() {
      await registration?.[Symbol.asyncDispose]();
    },
  };
}

/** Tells people who list what is registered. Its health it tells whoever asks: told once, it would not stay true. */
async function reportVersion(
  { registries, version }: SelfRegistrationOptions,
  service: RegisteredService,
): Promise<void> {
  const { service_name, instance_id } = service;
  const instance = { service_name, ...(instance_id === undefined ? {} : { instance_id }) };
  const client = createRegistryClient({ servers: registries });
  const timestamp = new Date().toISOString();
  await client.reportLifecycle({ ...instance, event: 'started', timestamp, details: { version } });
}
