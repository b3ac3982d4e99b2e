import { type Clock, systemClock } from '../clock.ts';
import { decide, type Limit, type LimitDecision, type RateLimiter } from './rate-limiter.ts';
import { BUCKETS, bucketMsOf, SlidingWindow } from './sliding-window.ts';

interface MemoryLimiterDeps {
  readonly clock?: Clock;
  /** How many keys have a count of their own, for each length of window; 65,536 by default. */
  readonly maxKeys?: number;
}

const MAX_KEYS = 65_536;

/**
 * Counts in this process alone.
 *
 * Memory is bounded, and no bound ever lets a caller have more than its limit: a key is forgotten
 * only when nothing of it counts any more. Callers that come while as many others are active share
 * one count, so that they may be refused early.
 */
export class MemoryLimiter implements RateLimiter {
  readonly #clock: Clock;
  readonly #maxKeys: number;
  readonly #tables = new Map<number, Table>();

  constructor({ clock = systemClock, maxKeys = MAX_KEYS }: MemoryLimiterDeps = {}) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
  }

  take(key: string, limit: Limit): LimitDecision {
    const { requests, windowMs } = limit;
    const table = this.#tables.get(windowMs) ?? new Table(this.#maxKeys);
    this.#tables.set(windowMs, table);
    const nowMs = this.#clock.monotonicMs();
    const bucketMs = bucketMsOf(windowMs);
    const current = Math.floor(nowMs / bucketMs);
    const window = table.windowOf(key, current);
    const allowed = window.take(current, requests);
    const remaining = Math.max(0, requests - window.total);
    const untilFreeMs = ((window.oldest ?? current) + BUCKETS) * bucketMs - nowMs;
    return decide({ allowed, remaining, untilFreeMs }, limit, this.#clock.now().getTime());
  }
}

/**
 * Windows of one length by key. What was asked for since the last turn is young, the rest old. A
 * turn is at least a window long, so that nothing counts any more of what is old at the next one.
 */
class Table {
  readonly #maxKeys: number;
  #young = new Map<string, SlidingWindow>();
  #old = new Map<string, SlidingWindow>();
  #shared = new SlidingWindow();
  #turnedAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  windowOf(key: string, current: number): SlidingWindow {
    if (current - this.#turnedAt >= BUCKETS) {
      this.#old = current - this.#askedAt >= BUCKETS ? new Map() : this.#young;
      this.#young = new Map();
      this.#turnedAt = current;
    }
    this.#askedAt = current;
    const known = this.#young.get(key) ?? this.#old.get(key);
    if (known === undefined && this.#young.size + this.#old.size >= this.#maxKeys) return this.#shared;
    // What it has had of the shared count is not known: too much is counted, never too little.
    const window = known ?? this.#shared.copy();
    this.#old.delete(key);
    this.#young.set(key, window);
    return window;
  }
}
