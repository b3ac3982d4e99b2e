import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { isServiceNotFound } from '@rollcall/client/registry-error.ts';
import { sleep } from '@rollcall/platform/retry.ts';

/** Services that come, move and go, one after the other. */
export interface Changes {
  /** How many the registry has accepted. */
  readonly made: number;
  /** Ends once the change under way is made. */
  stop(): Promise<void>;
}

const PAUSE_MS = 30;
const RETRY_MS = 200;

export interface ChangesOptions {
  /**
   * Base URLs of the registries: what one of them does not take is asked of the others, until it is
   * done.
   */
  readonly servers: readonly string[];
  readonly prefix: string;
  /** URLs by name: set to what is registered once a change is made. */
  readonly registered: Map<string, string>;
}

export function startChanges({ servers, prefix, registered }: ChangesOptions): Changes {
  const client = createRegistryClient({ servers });
  const stopping = new AbortController();
  let made = 0;

  async function make(change: () => Promise<unknown>): Promise<void> {
    for (;;) {
      const isDone = await change().then(
        () => true,
        // An attempt to remove it may have succeeded without an answer.
        isServiceNotFound,
      );
      if (isDone) break;
      // Also where it is to stop: nobody knows what became of the last attempt.
      await sleep(RETRY_MS);
    }
    made += 1;
    await sleep(PAUSE_MS, stopping.signal);
  }

  const running = (async () => {
    for (let number = 0; !stopping.signal.aborted; number += 1) {
      const service_name = `${prefix}-${number}`;
      for (const service_url of ['http://first', `http://moved-${number}`]) {
        await make(() => client.register({ service_name, service_url }));
        registered.set(service_name, service_url);
      }
      if (number % 3 > 0) continue;
      await make(() => client.unregister(service_name));
      registered.delete(service_name);
    }
  })();

  return {
    get made() {
      return made;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
