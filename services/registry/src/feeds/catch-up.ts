import { RegistryError } from '../common/errors.ts';

/** As much of a feed as is needed to know how far it is. */
export interface Followed {
  /** The version up to which everything has been sent. */
  readonly reached: number;
  /** Resolves once `version` is reached, or when the signal aborts. */
  whenReached(version: number, signal: AbortSignal): Promise<void>;
}

/** What a feed follows. */
export interface FeedSource {
  /** Whether the feed receives what happens there. */
  connected(): boolean;
  /** The version that it is at, read after this was called. Rejects when it cannot be reached. */
  newestVersion(): Promise<number>;
}

export interface CatchUpDeps {
  readonly source: FeedSource;
  /** Nobody waits any more. */
  readonly signal: AbortSignal;
}

const LIMIT_MS = 2000;

/**
 * Waits, if need be, for the version that a subscriber knows from another replica: whoever is ahead
 * would treat what is known here as news. Resolves before it is reached where that may never be: it
 * is a version of another history than the store's, or it is that of a list, which no event has.
 *
 * @throws RegistryError STORE_UNAVAILABLE where the store does not answer, so that the version
 * cannot be reached.
 */
export async function catchUp(feed: Followed, version: number, { source, signal }: CatchUpDeps): Promise<void> {
  if (version <= feed.reached) return;
  if (!source.connected()) throw behind();
  const over = new AbortController();
  const end = () => over.abort();
  let newest: number | undefined;
  const compare = (at: number) => {
    newest = at;
    if (at < version) end();
  };
  void source.newestVersion().then(compare, end);
  await feed.whenReached(version, AbortSignal.any([over.signal, signal, AbortSignal.timeout(LIMIT_MS)]));
  if (feed.reached >= version || signal.aborted) return;
  if (newest === undefined || !source.connected()) throw behind();
}

function behind(): RegistryError {
  return new RegistryError('STORE_UNAVAILABLE', 'This replica has not received what you already know; ask another one');
}
