import type { Result } from 'ioredis';
import { type Clock, systemClock } from '../clock.ts';
import type { Redis } from '../redis/client.ts';
import { decide, type Limit, type LimitDecision, type RateLimiter } from './rate-limiter.ts';
import { TAKE_SCRIPT } from './redis-script.ts';
import { bucketMsOf } from './sliding-window.ts';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    rollcallTake(keys: number, ...keysAndArguments: (string | number)[]): Result<number[], Context>;
  }
}

interface RedisLimiterDeps {
  readonly redis: Redis;
  /** Begins the keys. Replicas that count together have the same one. */
  readonly prefix: string;
  readonly clock?: Clock;
  /**
   * Milliseconds since the epoch; the server's own by default, the only time that all replicas
   * share.
   */
  readonly serverTimeMs?: () => number;
}

/** A request that waits to be counted. */
interface Asking {
  readonly name: string;
  readonly limit: Limit;
  readonly resolve: (decision: LimitDecision) => void;
  readonly reject: (error: unknown) => void;
}

/** So many are counted by one call: it keeps Redis from all others meanwhile. */
const REQUESTS_PER_CALL = 100;
const ANSWERS_PER_REQUEST = 3;

/**
 * Counts in Redis, for all replicas together. The requests of one turn of the event loop are
 * counted by one call, in one round trip.
 */
export class RedisLimiter implements RateLimiter {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #serverTimeMs: () => number | '';
  #asking: Asking[] = [];

  constructor({ redis, prefix, clock = systemClock, serverTimeMs }: RedisLimiterDeps) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#serverTimeMs = serverTimeMs ?? (() => '');
    redis.defineCommand('rollcallTake', { lua: TAKE_SCRIPT });
  }

  /** @throws (rejects) when Redis is unavailable or refuses. */
  take(key: string, limit: Limit): Promise<LimitDecision> {
    const name = `${this.#prefix}:limit:${limit.windowMs}:${key}`;
    return new Promise((resolve, reject) => {
      if (this.#asking.length === 0) setImmediate(() => this.#askAll());
      this.#asking.push({ name, limit, resolve, reject });
    });
  }

  #askAll(): void {
    const asking = this.#asking;
    this.#asking = [];
    for (let start = 0; start < asking.length; start += REQUESTS_PER_CALL) {
      void this.#ask(asking.slice(start, start + REQUESTS_PER_CALL));
    }
  }

  async #ask(asking: readonly Asking[]): Promise<void> {
    try {
      const names = asking.map(({ name }) => name);
      const limits = asking.flatMap(({ limit }) => [limit.requests, bucketMsOf(limit.windowMs)]);
      const answers = await this.#redis.rollcallTake(names.length, ...names, this.#serverTimeMs(), ...limits);
      const nowMs = this.#clock.now().getTime();
      for (const [index, { limit, resolve }] of asking.entries()) {
        const [allowed, remaining = 0, untilFreeMs = 0] = answers.slice(
          index * ANSWERS_PER_REQUEST,
          (index + 1) * ANSWERS_PER_REQUEST,
        );
        resolve(decide({ allowed: allowed === 1, remaining, untilFreeMs }, limit, nowMs));
      }
    } catch (error) {
      for (const { reject } of asking) reject(error);
    }
  }
}
