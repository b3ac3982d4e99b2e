import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { newJob, recordUpdate } from './delivery/fixture.ts';

/** So many that every list is long enough to be compressed. */
const COUNT = 30;

let registry: RunningService;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const namespace = await createNamespace('compression');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  const indexes = Array.from({ length: COUNT }, (_, index) => index);
  await Promise.all(indexes.flatMap((index) => [register('shop', index), register(`shop-${index}`, index)]));
  const jobs = { apiVersion: 'v1', kind: 'List', items: indexes.map((index) => newJob(`job-${index}`)) };
  await namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(jobs) });
  const log = createLogger('test', 'fatal');
  const pool = createPool({ url: database.url, schema: 'registry', maxConnections: 1, log });
  for (const index of indexes) {
    await recordUpdate(pool, `update-${index}`, {
      newVersion: `1.${index}.0`,
      finishedAt: new Date(Date.UTC(2026, 1, 1, index)),
    });
  }
  await pool.end();
});

afterAll(() => stack.disposeAsync());

async function register(service_name: string, index: number): Promise<void> {
  const service_url = `http://shop-${index}`;
  const body = { service_name, instance_id: `i-${index}`, service_url };
  expect((await registry.call('POST', '/services/register', body)).status).toBe(200);
}

/** The answer's text, and how it was encoded. */
async function get(path: string, encoding: string): Promise<readonly [string | null, string]> {
  const response = await fetch(`${registry.url}/api/v1${path}`, { headers: { 'accept-encoding': encoding } });
  expect(response.status).toBe(200);
  return [response.headers.get('content-encoding'), await response.text()];
}

describe.each([
  '/services',
  '/services?healthy=true',
  '/services?limit=10',
  '/services/shop/instances',
  '/jobs',
  '/updates/history',
  '/updates/history/shop',
  '/updates/history/shop/export/csv',
  '/updates/history/shop/export/json',
  '/openapi.json',
])('GET %s', (path) => {
  test.each(['gzip', 'br'])('is the same in %s', async (encoding) => {
    const [plain, whole] = await get(path, 'identity');
    expect(plain).toBeNull();
    expect(whole.length).toBeGreaterThan(1024);
    expect(await get(path, encoding)).toEqual([encoding, whole]);
  });
});
