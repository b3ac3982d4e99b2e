import { createReleaseStore } from '@rollcall/registry/releases/store/releases.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type DeliveryFixture, recordUpdate, startDelivery } from './fixture.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;

beforeAll(async () => {
  namespace = await createNamespace('updates');
  database = await createDatabase();
  delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url });
});

afterAll(async () => {
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const checksum = `sha256:${'ab'.repeat(32)}`;

function at(minute: number): Date {
  return new Date(Date.UTC(2026, 10, 20, 12, minute));
}

describe('contract 1, update history', () => {
  test('without any update everything is empty', async () => {
    expect(await delivery.get('/updates/history')).toMatchObject({ status: 200, body: { history: [], total: 0 } });
    expect(await delivery.get('/updates/history/unknown')).toMatchObject({
      status: 200,
      body: { service_name: 'unknown', history: [], total: 0 },
    });
    expect((await delivery.get('/updates/statistics')).body).toEqual({
      total_updates: 0,
      successful_updates: 0,
      failed_updates: 0,
      rolled_back_updates: 0,
      success_rate: 0,
      average_duration_seconds: 0,
      services_updated: [],
    });
    expect((await delivery.get('/updates/history/unknown/export/csv')).text).toBe(
      'Service Name,Old Version,New Version,Timestamp,Status,Duration (seconds),Artifact URL,Checksum\r\n',
    );
    expect((await delivery.get('/updates/history/unknown/export/json')).body).toEqual({
      service_name: 'unknown',
      history: [],
      total: 0,
    });
  });

  test('entries have the documented fields, newest first, and limits do not change the total', async () => {
    await recordUpdate(delivery.pool, 'h1', {
      finishedAt: at(1),
      newVersion: '1.1.0',
      startedAt: new Date(at(1).getTime() - 1500),
    });
    await recordUpdate(delivery.pool, 'h3', {
      finishedAt: at(3),
      newVersion: '1.2.0',
      oldVersion: '1.1.0',
      outcome: 'failed',
    });
    await recordUpdate(delivery.pool, 'h2', {
      serviceName: 'cart',
      finishedAt: at(2),
      newVersion: '7',
      oldVersion: '',
      outcome: 'rolled_back',
      artifact: { url: 'https://files.example.com/cart', type: 'binary', checksum },
    });
    const all = await delivery.get('/updates/history');
    expect(all.body).toEqual({
      history: [
        entry({
          new_version: '1.2.0',
          old_version: '1.1.0',
          timestamp: '2026-11-20T12:03:00.000+00:00',
          status: 'failed',
        }),
        entry({
          service_name: 'cart',
          new_version: '7',
          old_version: '',
          timestamp: '2026-11-20T12:02:00.000+00:00',
          status: 'rolled_back',
        }),
        entry({ duration_seconds: 1.5 }),
      ],
      total: 3,
    });
    const cart = await delivery.get('/updates/history/cart');
    expect(cart.body).toEqual({
      service_name: 'cart',
      history: [
        {
          ...entry({
            service_name: 'cart',
            new_version: '7',
            old_version: '',
            timestamp: '2026-11-20T12:02:00.000+00:00',
            status: 'rolled_back',
          }),
          artifact_url: 'https://files.example.com/cart',
          checksum,
          artifact_path: '',
          backup_path: '',
        },
      ],
      total: 1,
    });
    const limited = await delivery.get('/updates/history/shop?limit=1');
    expect(limited.body).toMatchObject({ total: 2, history: [{ new_version: '1.2.0' }] });
    expect((await delivery.get('/updates/history?limit=2')).body).toMatchObject({ total: 3, history: [{}, {}] });
  });

  test.each(['0', '-1', '1001', '1.5', '1e2', ' 5', '', 'abc', '01', '5&limit=6', '99999999999999999999'])(
    'limit=%s is refused',
    async (limit) => {
      for (const path of ['/updates/history', '/updates/history/shop', '/updates/history/shop/export/csv']) {
        const answer = await delivery.get(`${path}?limit=${limit}`);
        expect(answer).toMatchObject({
          status: 400,
          body: { error: 'Invalid request', message: expect.stringMatching(/limit/) },
        });
      }
    },
  );

  test.each(['1', '999', '1000'])('limit=%s is accepted', async (limit) => {
    expect((await delivery.get(`/updates/history?limit=${limit}`)).status).toBe(200);
  });

  test('an illegal service name is refused', async () => {
    const answer = await delivery.get('/updates/history/a%3Ab');
    expect(answer).toMatchObject({ status: 400, body: { error: 'Invalid service name' } });
  });

  test('statistics count by status and by service', async () => {
    expect((await delivery.get('/updates/statistics')).body).toEqual({
      total_updates: 3,
      successful_updates: 1,
      failed_updates: 1,
      rolled_back_updates: 1,
      success_rate: 33.33,
      average_duration_seconds: 7.167,
      services_updated: [
        { service_name: 'shop', update_count: 2 },
        { service_name: 'cart', update_count: 1 },
      ],
    });
  });
});

describe('contract 1, export', () => {
  test('CSV is a named attachment with the documented columns', async () => {
    const answer = await delivery.get('/updates/history/shop/export/csv');
    expect(answer.headers.get('content-type')).toMatch(/^text\/csv; charset=utf-8/);
    expect(answer.headers.get('content-disposition')).toBe(
      `attachment; filename="shop-history.csv"; filename*=UTF-8''shop-history.csv`,
    );
    expect(answer.text.split('\r\n')).toEqual([
      'Service Name,Old Version,New Version,Timestamp,Status,Duration (seconds),Artifact URL,Checksum',
      'shop,1.1.0,1.2.0,2026-11-20T12:03:00.000+00:00,failed,10,shop:1.2.0,',
      'shop,1.0.0,1.1.0,2026-11-20T12:01:00.000+00:00,success,1.5,shop:1.1.0,',
      '',
    ]);
  });

  test('JSON has the structure of the history', async () => {
    const exported = await delivery.get('/updates/history/shop/export/json?limit=1');
    expect(exported.headers.get('content-disposition')).toContain('shop-history.json');
    expect(exported.body).toEqual((await delivery.get('/updates/history/shop?limit=1')).body);
  });

  test('other formats are refused', async () => {
    for (const format of ['xml', 'CSV', 'jsonl']) {
      const answer = await delivery.get(`/updates/history/shop/export/${format}`);
      expect(answer).toMatchObject({ status: 400, body: { error: 'Invalid request', message: expect.any(String) } });
    }
  });

  test('names and values from outside do no harm', async () => {
    const serviceName = '=größe,"x"';
    await recordUpdate(delivery.pool, 'evil', { serviceName, oldVersion: '@SUM(A1)', newVersion: '-1+1' });
    const answer = await delivery.get(`/updates/history/${encodeURIComponent(serviceName)}/export/csv`);
    expect(answer.text.split('\r\n')[1]).toBe(
      `"'=größe,""x""",'@SUM(A1),'-1+1,2026-11-20T12:00:00.000+00:00,success,10,shop:-1+1,`,
    );
    expect(answer.headers.get('content-disposition')).toBe(
      `attachment; filename="_gr__e__x_-history.csv"; filename*=UTF-8''%3Dgr%C3%B6%C3%9Fe%2C%22x%22-history.csv`,
    );
  });

  test('a long history is exported as a whole, each entry once, unless limited', async () => {
    const count = 1234;
    await delivery.pool.query(
      `INSERT INTO history (job_uid, job_name, service_name, operation, old_version, new_version, started_at, finished_at,
         duration_seconds, outcome, artifact_url, artifact_type, checksum, requested_by)
       SELECT 'long-' || n, 'j', 'long', 'Deploy', '', 'v' || n, t, t, 0, 'success', 'x', 'image', '', ''
       FROM generate_series(1, $1) n, LATERAL (SELECT timestamptz '2026-11-20' + (n / 10) * interval '1 s' AS t) times`,
      [count],
    );
    const csv = await delivery.get('/updates/history/long/export/csv');
    const versions = csv.text
      .split('\r\n')
      .slice(1, -1)
      .map((line) => line.split(',')[2]);
    expect(versions).toHaveLength(count);
    expect(new Set(versions).size).toBe(count);
    const json = await delivery.get('/updates/history/long/export/json');
    expect(json.body['total']).toBe(count);
    expect(json.body['history']).toMatchObject(versions.map((new_version) => ({ new_version })));
    const limited = await delivery.get('/updates/history/long/export/csv?limit=777');
    expect(limited.text.split('\r\n').slice(1, -1)).toHaveLength(777);
  });
});

test('jobs that wait for the API server leave database connections for everything else', async () => {
  const releases = createReleaseStore(() => delivery.pool);
  const gate = Promise.withResolvers<void>();
  const services = Array.from({ length: 30 }, (_, index) => `waiting-${index}`);
  const artifact = { url: 'shop:1.0.0', type: 'image', checksum: undefined } as const;
  const asked = services.map((serviceName) =>
    releases.recordWith({ serviceName, version: '1.0.0', artifact }, () => gate.promise),
  );
  await expect.poll(() => delivery.pool.totalCount - delivery.pool.idleCount).toBe(4);
  expect((await delivery.get('/updates/history')).status).toBe(200);
  gate.resolve();
  await Promise.all(asked);
  expect(await Promise.all(services.map((serviceName) => releases.versions(serviceName)))).toEqual(
    services.map(() => ['1.0.0']),
  );
});

function entry(fields: Record<string, unknown>) {
  return {
    service_name: 'shop',
    old_version: '1.0.0',
    new_version: '1.1.0',
    timestamp: '2026-11-20T12:01:00.000+00:00',
    status: 'success',
    duration_seconds: 10,
    ...fields,
  };
}
