import { retryAfterMs } from '../../outbound/retry-after.ts';
import type { PostAnswer } from '../../webhooks/post.ts';
import type { DeliveryOutcome, RoundOutcome } from './webhooks.ts';

/** Ten attempts within three to four days, as Standard Webhooks suggests ("Retry schedule"). */
const DELAYS_SECONDS = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
/** What failed together does not come back together. */
const JITTER = 0.2;
const GONE = 410;

/** What came of a post: an answer, or why there was none. */
export type Posted = PostAnswer | { readonly failure: string };

export interface JudgeOptions {
  /** How many attempts there have been before this one. */
  readonly attempts: number;
  readonly now: Date;
  /** In [0, 1). */
  readonly random: () => number;
}

/** What an attempt means for its delivery, and for its endpoint. */
export interface Judgement {
  readonly delivery: DeliveryOutcome;
  readonly round: RoundOutcome;
}

/**
 * Pure. 2xx is success; all else is tried again, but for 410, which ends the endpoint. A receiver
 * that says when to come back gets nothing else meanwhile.
 */
export function judge(posted: Posted, { attempts, now, random }: JudgeOptions): Judgement {
  const result = 'failure' in posted ? posted.failure : `answer ${posted.status}`;
  const status = 'failure' in posted ? undefined : posted.status;
  const round = { isGone: status === GONE, hasSucceeded: false, hasFailed: true, pauseSeconds: 0 };
  if (status !== undefined && status >= 200 && status < 300) {
    return {
      delivery: { state: 'delivered', retrySeconds: undefined, result },
      round: { ...round, hasSucceeded: true, hasFailed: false },
    };
  }
  const delay = DELAYS_SECONDS[attempts];
  if (round.isGone || delay === undefined)
    return { delivery: { state: 'dead', retrySeconds: undefined, result }, round };
  const asked = 'failure' in posted ? undefined : retryAfterMs(posted.retryAfter, now);
  const pauseSeconds = (asked ?? 0) / 1000;
  const retrySeconds = Math.max(delay * (1 + JITTER * random()), pauseSeconds);
  return { delivery: { state: 'pending', retrySeconds, result }, round: { ...round, pauseSeconds } };
}

/** Pure. What several attempts say together. */
export function together(rounds: readonly RoundOutcome[]): RoundOutcome {
  return {
    isGone: rounds.some(({ isGone }) => isGone),
    hasSucceeded: rounds.some(({ hasSucceeded }) => hasSucceeded),
    hasFailed: rounds.some(({ hasFailed }) => hasFailed),
    pauseSeconds: Math.max(0, ...rounds.map(({ pauseSeconds }) => pauseSeconds)),
  };
}
