import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import type { Redis } from '@rollcall/platform/redis/client.ts';
import type { Result } from 'ioredis';
import { decide, type Limit, type LimitDecision, type Limiter } from './limiter.ts';
import { TAKE_SCRIPT } from './redis-script.ts';
import { bucketMsOf } from './sliding-window.ts';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    rollcallTake(
      key: string,
      requests: number,
      bucketMs: number,
      nowMs: number | '',
    ): Result<[allowed: number, remaining: number, untilFreeMs: number], Context>;
  }
}

interface RedisLimiterDeps {
  readonly redis: Redis;
  /** Begins the keys. Those who count together have the same one. */
  readonly prefix: string;
  readonly clock?: Clock;
  /** Milliseconds since the epoch; the server's own by default, the only time that all replicas share. */
  readonly serverTimeMs?: () => number;
}

/** Counts in Redis, for all replicas together. A call is one round trip, shared by all calls of the same turn of the event loop. */
export class RedisLimiter implements Limiter {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #serverTimeMs: () => number | '';

  constructor({ redis, prefix, clock = systemClock, serverTimeMs }: RedisLimiterDeps) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#serverTimeMs = serverTimeMs ?? (() => '');
    redis.defineCommand('rollcallTake', { numberOfKeys: 1, lua: TAKE_SCRIPT });
  }

  /** @throws (rejects) when Redis is away or refuses. */
  async take(key: string, limit: Limit): Promise<LimitDecision> {
    const { requests, windowMs } = limit;
    const name = `${this.#prefix}:limit:${windowMs}:${key}`;
    const answer = await this.#redis.rollcallTake(name, requests, bucketMsOf(windowMs), this.#serverTimeMs());
    const [allowed, remaining, untilFreeMs] = answer;
    return decide({ allowed: allowed === 1, remaining, untilFreeMs }, limit, this.#clock.now().getTime());
  }
}
