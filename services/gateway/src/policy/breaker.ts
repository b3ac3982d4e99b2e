import type { Clock } from '@rollcall/platform/clock.ts';

/** closed: requests pass. open: none does, until a time. half-open: one passes, and what becomes of it decides. */
type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerPolicy {
  /** So many failures in a row open it. */
  readonly consecutiveFailures: number;
  /** First pause; doubled each time the request after it fails, up to `maxOpenMs`. */
  readonly openMs: number;
  readonly maxOpenMs: number;
}

/** Keeps requests from a target that fails, so that it can recover and callers need not wait for it. */
export interface Breaker {
  state(): BreakerState;
  /** Whether a request may be sent now. Who gets true tells the outcome by one of the other two. */
  tryAcquire(): boolean;
  succeeded(): void;
  failed(): void;
  /** The request ended for a reason that says nothing of the target. */
  abandoned(): void;
  /** Until the next request may be sent, in milliseconds; 0: now. */
  retryAfterMs(): number;
}

export function createBreaker(clock: Clock, policy: BreakerPolicy): Breaker {
  const { consecutiveFailures, openMs, maxOpenMs } = policy;
  let failures = 0;
  let openings = 0;
  let openUntilMs = Number.NEGATIVE_INFINITY;
  let probing = false;

  const isOpen = (): boolean => openings > 0 && clock.monotonicMs() < openUntilMs;

  return {
    state: () => (openings === 0 ? 'closed' : isOpen() ? 'open' : 'half-open'),
    tryAcquire() {
      if (openings === 0) return true;
      if (isOpen() || probing) return false;
      probing = true;
      return true;
    },
    succeeded() {
      failures = 0;
      openings = 0;
      probing = false;
    },
    failed() {
      failures += 1;
      if (openings === 0 ? failures < consecutiveFailures : !probing) return;
      probing = false;
      openUntilMs = clock.monotonicMs() + Math.min(openMs * 2 ** openings, maxOpenMs);
      openings += 1;
    },
    abandoned() {
      probing = false;
    },
    retryAfterMs: () => (openings === 0 ? 0 : Math.max(0, openUntilMs - clock.monotonicMs())),
  };
}
