import { setImmediate } from 'node:timers/promises';
import type { ListedEvent } from '@rollcall/client/listed-cache.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import type { Topic } from './topic.ts';

const RETRY = { baseMs: 100, maxMs: 2000 };
/**
 * A connection that ends sooner counts as a failure, so that one which always ends at once is not
 * retried at once.
 */
const STABLE_AFTER_MS = 5000;

interface WatchOptions {
  readonly cursor: string | undefined;
  readonly signal: AbortSignal;
}

export interface FollowDeps<Item extends object, Gone extends string> {
  /** What is followed, for the log. */
  readonly name: string;
  readonly topic: Topic<Item, Gone>;
  /** Reads one connection until it ends. */
  readonly watch: (options: WatchOptions) => AsyncGenerator<ListedEvent<Item, Gone>, void>;
  readonly log: Logger;
}

/**
 * Feeds the topic with the registry's events, over one connection after the other. While no
 * registry answers, nothing is sent; what was missed comes with the next connection. Resolves once
 * the signal aborts.
 */
export async function follow<Item extends object, Gone extends string>(
  { name, topic, watch, log }: FollowDeps<Item, Gone>,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    const startedAt = performance.now();
    let reason = 'the registry ended the stream';
    try {
      for await (const event of watch({ cursor: topic.beginConnection(), signal })) {
        if (event.type === 'opened') log.info({ stream: name }, 'following the registry');
        const telling = topic.apply(event);
        while (telling.next().done !== true) await setImmediate();
      }
    } catch (error) {
      reason = errorMessage(error);
    }
    if (signal.aborted) return;
    if (performance.now() - startedAt >= STABLE_AFTER_MS) failures = 0;
    const retryInMs = backoffMs(failures, RETRY);
    log.warn({ stream: name, reason, retryInMs }, 'the registry is not followed');
    await sleep(retryInMs, signal);
  }
}
