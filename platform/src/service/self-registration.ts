import { type Registration, register } from '@rollcall/client/registration.ts';
import type { Capability } from '@rollcall/client/registry-types.ts';
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
  readonly log: Logger;
}

/**
 * Keeps this replica registered. Started last and stopped first: nobody is sent here who is not
 * answered. Starting it waits for no registry.
 */
export function selfRegistration({ registries, name, url, capabilities, log }: SelfRegistrationOptions): Actor {
  let registration: Registration | undefined;
  return {
    name: 'registration',
    async start() {
      registration = register({ servers: registries, name, url, capabilities });
      registration.registered.catch(() => undefined);
      registration.on('registered', ({ again }) => log.info({ again }, 'registered'));
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
