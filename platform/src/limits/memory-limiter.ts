import { type Clock, systemClock } from '../clock.ts';
import { KeyTable } from './key-table.ts';
import { decide, type Limit, type LimitDecision, type Limiter } from './limiter.ts';

interface MemoryLimiterDeps {
  readonly clock?: Clock;
  /**
   * How many keys have a count of their own, for each length of window; 65,536 by default, about 20
   * MB when all are in use.
   */
  readonly maxKeys?: number;
}

const MAX_KEYS = 65_536;

/**
 * Counts in this process alone.
 *
 * Memory is bounded, and no bound ever lets a caller have more than its limit: a key is forgotten
 * only when nothing of it counts any more. Callers that come while as many others are active share
 * counts, so that they may be refused early.
 */
export class MemoryLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #maxKeys: number;
  readonly #tables = new Map<number, KeyTable>();

  constructor({ clock = systemClock, maxKeys = MAX_KEYS }: MemoryLimiterDeps = {}) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
  }

  take(key: string, limit: Limit): LimitDecision {
    const { requests, windowMs } = limit;
    let table = this.#tables.get(windowMs);
    if (table === undefined) {
      table = new KeyTable(windowMs, this.#maxKeys);
      this.#tables.set(windowMs, table);
    }
    const counted = table.take(key, requests, this.#clock.monotonicMs());
    return decide(counted, limit, this.#clock.now().getTime());
  }
}
