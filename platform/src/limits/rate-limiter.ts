/** At most so many requests in any stretch of time of that length. */
export interface Limit {
  /** A whole number, 1 or more. */
  readonly requests: number;
  /** A whole number of milliseconds, 60 or more. */
  readonly windowMs: number;
}

/** A limit as answers name it. */
export interface NamedLimit {
  /** A token of RFC 9110: letters, digits and `-`. */
  readonly name: string;
  readonly limit: Limit;
}

/** What a limiter says of one request. */
export interface LimitDecision {
  /** A request that is refused is not counted. */
  readonly allowed: boolean;
  readonly limit: Limit;
  /** Requests that would still be allowed now. */
  readonly remaining: number;
  /**
   * When the oldest counted request leaves the window, that is when more becomes free: unix
   * seconds, rounded up.
   */
  readonly resetAtSeconds: number;
  /**
   * Until then, rounded up: 1 or more. Unlike the instant it needs no clock that both sides agree
   * on.
   */
  readonly retryAfterSeconds: number;
}

/** Counts requests by key and refuses those beyond the limit. */
export interface RateLimiter {
  /**
   * Asks for one request. Those with the same key and the same window share a count; the number of
   * requests may differ from call to call.
   */
  take(key: string, limit: Limit): LimitDecision | Promise<LimitDecision>;
}

/** What a store of counts knows after it was asked. */
export interface Count {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the oldest counted request leaves the window. */
  readonly untilFreeMs: number;
}

/** @param nowMs wall-clock time of this machine, in milliseconds since the epoch. */
export function decide({ allowed, remaining, untilFreeMs }: Count, limit: Limit, nowMs: number): LimitDecision {
  return {
    allowed,
    limit,
    remaining,
    resetAtSeconds: Math.ceil((nowMs + untilFreeMs) / 1000),
    retryAfterSeconds: Math.max(1, Math.ceil(untilFreeMs / 1000)),
  };
}
