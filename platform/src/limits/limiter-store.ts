import { createHash } from 'node:crypto';
import { Counter, Gauge, type Registry } from 'prom-client';
import { type Clock, systemClock } from '../clock.ts';
import type { Logger } from '../process/log.ts';
import type { Redis } from '../redis/client.ts';
import { FailoverLimiter } from './failover-limiter.ts';
import { MemoryLimiter } from './memory-limiter.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { RedisLimiter } from './redis-limiter.ts';

export interface LimiterStoreOptions {
  /** Undefined: each replica counts by itself. */
  readonly redis: Redis | undefined;
  /** Begins the keys there. */
  readonly redisPrefix: string;
  /** How long Redis has for an answer. */
  readonly redisTimeoutMs: number;
  /** Begins the names of its metrics, such as `rollcall_gateway`. */
  readonly metricsPrefix: string;
  readonly metrics: Registry;
  readonly log: Logger;
  readonly clock?: Clock;
}

/** Where one replica's requests are counted: in Redis with those of the others, or by itself. */
export interface LimiterStore extends RateLimiter {
  /** Resolves when Redis is found; before, this replica counts by itself. Never rejects. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createLimiterStore(options: LimiterStoreOptions): LimiterStore {
  const { redis, redisPrefix: prefix, redisTimeoutMs: timeoutMs, log, clock = systemClock } = options;
  const { metrics, metricsPrefix } = options;
  const registers = [metrics];
  const own = new MemoryLimiter({ clock });
  const fallbacks = new Counter({
    name: `${metricsPrefix}_limiter_fallbacks_total`,
    help: 'Requests counted by this replica alone because Redis was unavailable or too slow',
    registers,
  });
  const onFallback = (): void => fallbacks.inc();
  const shared =
    redis &&
    new FailoverLimiter({ shared: new RedisLimiter({ redis, prefix, clock }), own, timeoutMs, clock, log, onFallback });
  void new Gauge({
    name: `${metricsPrefix}_limiter_store`,
    help: 'Where requests are counted: 1 for the store in use, 0 for the other',
    labelNames: ['store'],
    registers,
    collect() {
      const usesShared = shared?.usesShared === true;
      this.set({ store: 'redis' }, usesShared ? 1 : 0);
      this.set({ store: 'memory' }, usesShared ? 0 : 1);
    },
  });
  const limiter: RateLimiter = shared ?? own;
  return {
    take: (key, limit) => limiter.take(key, limit),
    start: async () => shared?.start(),
    stop: async () => shared?.stop(),
  };
}

/**
 * Longer ones, which an external issuer may have, are counted by their hash, so that keys stay
 * small.
 */
const SUBJECT_LENGTH_MAX = 128;

/** What the requests of a subject are counted by. */
export function limitKeyOf(subject: string): string {
  if (subject.length <= SUBJECT_LENGTH_MAX) return subject;
  return `sha256:${createHash('sha256').update(subject).digest('base64url')}`;
}
