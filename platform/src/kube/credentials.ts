import type { Clock } from '../clock.ts';
import type { Credentials, KubeAccess } from './access.ts';

/** Files are read again after this long: service-account tokens are rotated in place. */
const MAX_AGE_MS = 30_000;
/** However many requests are refused, a renewal is not tried more often. */
const RENEWAL_PAUSE_MS = 1000;

export interface CredentialSource {
  /** The credentials to use now. The same object as long as nothing changed. */
  get(): Promise<Credentials>;
  /**
   * The server refused these: reads everything anew, unless that has just been done.
   *
   * @returns whether there are others.
   */
  renew(refused: Credentials): Promise<boolean>;
}

/**
 * Keeps the credentials of an access up to date. Reads them a first time, so that a wrong path or a
 * failing plugin shows at once.
 */
export async function createCredentialSource(access: KubeAccess, clock: Clock): Promise<CredentialSource> {
  let current = await access.readCredentials(false);
  let readAtMs = clock.monotonicMs();
  let reading: Promise<void> | undefined;

  async function refresh(refused: boolean): Promise<void> {
    readAtMs = clock.monotonicMs();
    try {
      const next = await access.readCredentials(refused);
      if (JSON.stringify(next) !== JSON.stringify(current)) current = next;
    } catch {
      // What was read last may serve longer than a file that is missing just now; if not, the
      // server says so.
    } finally {
      reading = undefined;
    }
  }

  return {
    async get() {
      if (clock.monotonicMs() - readAtMs >= MAX_AGE_MS) reading ??= refresh(false);
      await reading;
      return current;
    },
    async renew(refused) {
      await reading;
      if (current === refused && clock.monotonicMs() - readAtMs >= RENEWAL_PAUSE_MS) reading ??= refresh(true);
      await reading;
      return current !== refused;
    },
  };
}
