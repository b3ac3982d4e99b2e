import { type AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { type Checksum, fileMatches } from './checksum.ts';
import { type DownloadOptions, download } from './download.ts';
import { FetchError } from './errors.ts';
import { displayUrlOf } from './follow.ts';
import { createPartialFile } from './partial-file.ts';

const CONNECT_TIMEOUT_MS = 10_000;

export interface ArtifactOptions
  extends Pick<DownloadOptions, 'source' | 'maxBytes' | 'attempts' | 'backoff' | 'idleTimeoutMs' | 'report'> {
  readonly checksum: Checksum;
  /** Where the file is to be, whole or not at all. */
  readonly output: string;
  readonly mayConnect: AddressRule;
  /** For all attempts together. */
  readonly timeoutMs: number;
  /** Ends the fetch, for its reason; nothing is left then. */
  readonly signal: AbortSignal;
}

export interface FetchedArtifact {
  /** Undefined: the file was there already. */
  readonly bytes: number | undefined;
}

/**
 * Fetches a file, so that at its path there is the one with this checksum, or what was there
 * before. A wrong checksum is believed the second time: what was cut or cached badly on the way
 * comes right when it is fetched anew.
 *
 * @throws FetchError; the reason of the signal.
 */
export async function fetchArtifact(options: ArtifactOptions): Promise<FetchedArtifact> {
  const { source, checksum, output, maxBytes, timeoutMs, report } = options;
  if (await fileMatches(output, checksum, maxBytes)) return { bytes: undefined };
  const deadline = new AbortController();
  const overdue = new FetchError('FAILED', `${displayUrlOf(source.url)} was not fetched within ${timeoutMs / 1000} s`);
  const timer = setTimeout(() => deadline.abort(overdue), timeoutMs);
  const agent = createGuardedAgent({
    mayConnect: options.mayConnect,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    keepAlive: false,
  });
  try {
    await using partial = await createPartialFile(output, checksum);
    const signal = AbortSignal.any([options.signal, deadline.signal]);
    await download(partial, { ...options, agent, signal, fresh: false });
    if (!partial.matches()) {
      report('The checksum is wrong; fetching everything once more');
      await partial.startOver();
      await download(partial, { ...options, agent, signal, fresh: true });
    }
    if (!partial.matches()) {
      const wrong = `${displayUrlOf(source.url)} does not have the ${checksum.algorithm} checksum asked for`;
      throw new FetchError('CHECKSUM_MISMATCH', wrong);
    }
    signal.throwIfAborted();
    await partial.publish();
    return { bytes: partial.size };
  } finally {
    clearTimeout(timer);
    await agent.destroy();
  }
}
