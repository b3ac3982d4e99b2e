import { once } from 'node:events';
import { RedisLimiter } from '@rollcall/platform/limits/redis-limiter.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createRedis } from '@rollcall/platform/redis/client.ts';

/** What a test sends to begin. */
export interface CallerOrder {
  readonly url: string;
  readonly key: string;
  readonly requests: number;
  readonly windowMs: number;
  /** How many calls wait for their answer at a time. */
  readonly concurrency: number;
  /** For how long it calls. */
  readonly durationMs: number;
}

/**
 * Of each allowed request: when it was asked for and when that was known, in milliseconds since the
 * epoch.
 */
export type CallerReport = readonly (readonly [sentMs: number, answeredMs: number])[];

const nowMs = (): number => performance.timeOrigin + performance.now();

process.on('message', (order: CallerOrder) => void call(order));
process.send?.('ready');

/**
 * A replica of its own: takes from the limit as fast as it can, and reports what it was allowed.
 */
async function call({ url, key, requests, windowMs, concurrency, durationMs }: CallerOrder): Promise<void> {
  const redis = createRedis({ url, name: 'caller', log: createLogger('caller', 'silent') });
  await once(redis, 'ready');
  const limiter = new RedisLimiter({ redis, prefix: 'rollcall' });
  const untilMs = nowMs() + durationMs;
  const report: [number, number][] = [];
  const lane = async (): Promise<void> => {
    while (nowMs() < untilMs) {
      const sentMs = nowMs();
      const { allowed } = await limiter.take(key, { requests, windowMs });
      if (allowed) report.push([sentMs, nowMs()]);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  redis.disconnect();
  process.send?.(report, () => process.disconnect?.());
}
