import type { Clock } from '../clock.ts';

/**
 * closed: requests pass. open: none does, until a time. half-open: one passes, and what becomes of
 * it decides.
 */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerPolicy {
  /** So many failures in a row open it. */
  readonly consecutiveFailures: number;
  /** First pause; doubled each time the request after it fails, up to `maxOpenMs`. */
  readonly openMs: number;
  readonly maxOpenMs: number;
  /**
   * A request after a pause that has not been answered for so long lets another one pass: it may be
   * one that waits for news.
   */
  readonly probeMs: number;
}

export const defaultBreakerPolicy: BreakerPolicy = {
  consecutiveFailures: 5,
  openMs: 1000,
  maxOpenMs: 30_000,
  probeMs: 5000,
};

/**
 * Keeps requests from a target that fails, so that it can recover and callers need not wait for it.
 */
export interface Breaker {
  state(): BreakerState;
  /**
   * Whether a request may be sent now. Who gets true reports the outcome by one of the next three.
   */
  tryAcquire(): boolean;
  succeeded(): void;
  failed(): void;
  /** The request ended for a reason that says nothing of the target. */
  abandoned(): void;
  /** Until the next request may be sent, in milliseconds; 0: now. */
  retryAfterMs(): number;
  /** When it last closed after it had been open, by the monotonic clock; -Infinity: never. */
  closedAtMs(): number;
}

export function createBreaker(clock: Clock, policy: BreakerPolicy): Breaker {
  const { consecutiveFailures, openMs, maxOpenMs, probeMs } = policy;
  let failures = 0;
  let openings = 0;
  let openUntilMs = Number.NEGATIVE_INFINITY;
  let probedAtMs: number | undefined;
  let closedAtMs = Number.NEGATIVE_INFINITY;

  const isOpen = (): boolean => openings > 0 && clock.monotonicMs() < openUntilMs;

  return {
    state: () => (openings === 0 ? 'closed' : isOpen() ? 'open' : 'half-open'),
    tryAcquire() {
      if (openings === 0) return true;
      const nowMs = clock.monotonicMs();
      if (isOpen() || (probedAtMs !== undefined && nowMs < probedAtMs + probeMs)) return false;
      probedAtMs = nowMs;
      return true;
    },
    succeeded() {
      if (openings > 0) closedAtMs = clock.monotonicMs();
      failures = 0;
      openings = 0;
      probedAtMs = undefined;
    },
    failed() {
      failures += 1;
      if (openings === 0 ? failures < consecutiveFailures : probedAtMs === undefined) return;
      probedAtMs = undefined;
      openUntilMs = clock.monotonicMs() + Math.min(openMs * 2 ** openings, maxOpenMs);
      openings += 1;
    },
    abandoned() {
      probedAtMs = undefined;
    },
    retryAfterMs: () => (openings === 0 ? 0 : Math.max(0, openUntilMs - clock.monotonicMs())),
    closedAtMs: () => closedAtMs,
  };
}
