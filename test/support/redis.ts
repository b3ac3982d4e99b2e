import { DATABASES } from '@rollcall/local/redis.ts';
import { Redis } from 'ioredis';
import { inject } from 'vitest';

/** A Redis database of one test file's own. */
export interface TestRedis extends AsyncDisposable {
  /** Names the database, which is empty. */
  readonly url: string;
  /** For what all databases share, the channels of publish and subscribe; ends with a colon. */
  readonly prefix: string;
}

/** In database 0, which no test gets. */
const COUNTER = 'test:databases';

/** Claims a database on the shared Redis. Disposing of it empties it. */
export async function createRedis(): Promise<TestRedis> {
  const url = new URL(inject('redisUrl'));
  const count = await withRedis(url.href, (redis) => redis.incr(COUNTER));
  // After a thousand they come round again; the first ones have long been emptied by then.
  url.pathname = `/${1 + (count % (DATABASES - 1))}`;
  return {
    url: url.href,
    prefix: `test-${count}:`,
    [Symbol.asyncDispose]: async () => {
      await withRedis(url.href, (redis) => redis.flushdb());
    },
  };
}

async function withRedis<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url);
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}
