import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type DeliveryFixture, recordUpdate, startDelivery } from './fixture.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let second = 1_790_000_000;

beforeAll(async () => {
  namespace = await createNamespace('deliveries');
  database = await createDatabase();
  delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url });
});

afterAll(async () => {
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** Every test has seconds of its own. */
function nextSecond(): number {
  second += 10;
  delivery.setTime(new Date(second * 1000 + 700));
  return second;
}

const sha256 = `sha256:${'ab'.repeat(32)}`;
const image = { version: '1.0.0', artifact_url: 'registry.example.com/shop:1.0.0' };

async function storedJobs(): Promise<string[]> {
  const { items } = JSON.parse(await namespace.kubectl(['get', 'deliveryjobs', '-o', 'json']));
  return items.map((item: { metadata: { name: string } }) => item.metadata.name);
}

async function releasesOf(serviceName: string): Promise<unknown[]> {
  const { rows } = await delivery.pool.query('SELECT * FROM releases WHERE service_name = $1 ORDER BY version', [
    serviceName,
  ]);
  return rows;
}

describe('contract 1, deploy', () => {
  test('creates a held DeliveryJob named after its id, for a service that is not registered', async () => {
    const now = nextSecond();
    const answer = await delivery.post('/webhooks/deploy', { service_name: 'shop', ...image });
    const job_id = `deploy-shop-1.0.0-${now}`;
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      status: 'accepted',
      job_id,
      message: expect.stringContaining("'shop'"),
      service_name: 'shop',
      version: '1.0.0',
    });
    const job = await delivery.jobs.get(job_id);
    expect(job.metadata).toMatchObject({
      finalizers: ['rollcall.dev/history'],
      labels: { 'rollcall.dev/service': 'shop' },
    });
    expect(job.metadata.annotations).toBeUndefined();
    expect(job.spec).toEqual({
      serviceName: 'shop',
      operation: 'Deploy',
      version: '1.0.0',
      artifact: { type: 'image', url: image.artifact_url },
      requestedBy: 'webhook',
      abort: false,
      promote: false,
    });
    expect(await releasesOf('shop')).toMatchObject([
      { version: '1.0.0', artifact_url: image.artifact_url, checksum: null },
    ]);
  });

  test.each([
    ['rolling', 'Rolling'],
    ['blue-green', 'BlueGreen'],
    ['canary', 'Canary'],
  ])('strategy %s is %s', async (strategy, stored) => {
    nextSecond();
    const { body } = await delivery.post('/webhooks/deploy', { service_name: 'shop', ...image, strategy });
    expect((await delivery.jobs.get(String(body['job_id']))).spec.strategy).toBe(stored);
  });

  test('a binary is recorded with its checksum, an image may be pinned, an empty checksum is none', async () => {
    const now = nextSecond();
    const url = 'https://files.example.com/cart-2.tgz?a=b';
    const binary = { service_name: 'cart', version: '2', artifact_url: url, artifact_type: 'binary', checksum: sha256 };
    expect((await delivery.post('/webhooks/deploy', binary)).status).toBe(200);
    expect((await delivery.jobs.get(`deploy-cart-2-${now}`)).spec.artifact).toEqual({
      type: 'binary',
      url,
      checksum: sha256,
    });
    const pinned = {
      service_name: 'cart',
      version: '3',
      artifact_url: 'cart:3',
      artifact_type: 'image',
      checksum: sha256,
    };
    expect((await delivery.post('/webhooks/deploy', pinned)).status).toBe(200);
    const free = { ...pinned, version: '4', checksum: '' };
    expect((await delivery.post('/webhooks/deploy', free)).status).toBe(200);
    expect((await delivery.jobs.get(`deploy-cart-4-${now}`)).spec.artifact.checksum).toBeUndefined();
  });

  test('ids that are no object names get one, and keep the id as an annotation', async () => {
    const now = nextSecond();
    for (const [service_name, version] of [
      ['Größe', '1.0.0'],
      ['größe', '1.0.0'],
      ['shop_x', '1.0.0+build.5'],
      ['shop', '1.0.0~rc'],
      ['x'.repeat(253), '9'.repeat(128)],
    ] as const) {
      const { status, body } = await delivery.post('/webhooks/deploy', { ...image, service_name, version });
      const job_id = `deploy-${service_name}-${version}-${now}`;
      expect({ status, body }).toMatchObject({ status: 200, body: { job_id } });
      expect((await delivery.post('/webhooks/deploy', { ...image, service_name, version })).body['job_id']).toBe(
        job_id,
      );
    }
    const { items } = JSON.parse(await namespace.kubectl(['get', 'deliveryjobs', '-o', 'json']));
    const ids = items
      .filter((item: { metadata: { name: string } }) => /^deploy-.*\.[0-9a-f]{16}$/.test(item.metadata.name))
      .map(
        (item: { metadata: { annotations: Record<string, string> } }) =>
          item.metadata.annotations['rollcall.dev/job-id'],
      );
    expect(ids).toHaveLength(5);
    expect(ids).toContain(`deploy-Größe-1.0.0-${now}`);
  });

  test('the same call within a second is one job, also many at once; another one is a conflict that changes nothing', async () => {
    const now = nextSecond();
    const call = { service_name: 'once', ...image };
    const answers = await Promise.all(Array.from({ length: 10 }, () => delivery.post('/webhooks/deploy', call)));
    expect(new Set(answers.map(({ status, body }) => `${status} ${String(body['job_id'])}`))).toEqual(
      new Set([`200 deploy-once-1.0.0-${now}`]),
    );
    expect((await storedJobs()).filter((name) => name.startsWith('deploy-once-'))).toHaveLength(1);
    for (const other of [{ artifact_url: 'other:1' }, { strategy: 'canary' }, { checksum: sha256 }]) {
      const answer = await delivery.post('/webhooks/deploy', { ...call, ...other });
      expect(answer).toMatchObject({ status: 409, body: { error: 'Job conflict', message: expect.any(String) } });
    }
    expect(await releasesOf('once')).toMatchObject([{ artifact_url: image.artifact_url, checksum: null }]);
    delivery.setTime(new Date((now + 1) * 1000));
    expect((await delivery.post('/webhooks/deploy', call)).body['job_id']).toBe(`deploy-once-1.0.0-${now + 1}`);
  });

  test.each([
    ['no body', undefined],
    ['a list', []],
    ['a text', 'text'],
    ['no service', { ...image }],
    ['no version', { service_name: 'bad', artifact_url: 'x' }],
    ['no artifact', { service_name: 'bad', version: '1' }],
    ['a number as version', { service_name: 'bad', ...image, version: 1 }],
    ['null as checksum', { service_name: 'bad', ...image, checksum: null }],
    ['an empty name', { service_name: '', ...image }],
    ["a name with ':'", { service_name: 'a:b', ...image }],
    ['a name with a space', { service_name: 'a b', ...image }],
    ['a long name', { service_name: 'x'.repeat(10_000), ...image }],
    ['an empty version', { service_name: 'bad', ...image, version: '' }],
    ['a version with a slash', { service_name: 'bad', ...image, version: '1/2' }],
    ['a version with white space', { service_name: 'bad', ...image, version: '1 2' }],
    ['a long version', { service_name: 'bad', ...image, version: '1'.repeat(129) }],
    ['a version of 300 characters', { service_name: 'bad', ...image, version: '1'.repeat(300) }],
    ['a version that climbs', { service_name: 'bad', ...image, version: '../../1' }],
    ['an unknown artifact type', { service_name: 'bad', ...image, artifact_type: 'jar' }],
    ['an unknown strategy', { service_name: 'bad', ...image, strategy: 'yolo' }],
    ['a strategy of the custom resource', { service_name: 'bad', ...image, strategy: 'BlueGreen' }],
    ['no image reference', { service_name: 'bad', ...image, artifact_url: 'Not An Image' }],
    [
      'a binary without checksum',
      { service_name: 'bad', version: '1', artifact_url: 'https://x/y', artifact_type: 'binary' },
    ],
    [
      'a binary over http',
      { service_name: 'bad', version: '1', artifact_url: 'http://x/y', artifact_type: 'binary', checksum: sha256 },
    ],
    ['a wrong checksum', { service_name: 'bad', ...image, checksum: 'sha256:12' }],
    ['a checksum without its algorithm', { service_name: 'bad', ...image, checksum: 'ab'.repeat(32) }],
    ['a checksum of another algorithm', { service_name: 'bad', ...image, checksum: `md5:${'ab'.repeat(16)}` }],
    ['a checksum that is no hex', { service_name: 'bad', ...image, checksum: `sha256:${'xy'.repeat(32)}` }],
    ['a long secret', { service_name: 'bad', ...image, webhook_secret: 'x'.repeat(2000) }],
  ])('%s: 400, and nothing is stored', async (_name, body) => {
    nextSecond();
    for (const path of ['/webhooks/deploy', '/webhooks/update']) {
      if (path === '/webhooks/update' && typeof body === 'object' && 'strategy' in body) continue;
      const answer = await delivery.post(path, body);
      expect(answer).toMatchObject({ status: 400, body: { error: expect.any(String), message: expect.any(String) } });
    }
    expect(await releasesOf('bad')).toEqual([]);
    expect((await storedJobs()).filter((name) => name.startsWith('deploy-bad'))).toEqual([]);
  });

  test('malformed JSON: 400; a large body: 413', async () => {
    for (const path of ['update', 'check-updates', 'deploy', 'rollback', 'notify', 'config']) {
      for (const body of ['{', '{"service_name":', '', '{"__proto__":{}}']) {
        const answer = await delivery.postRaw(`/webhooks/${path}`, body);
        expect(answer).toMatchObject({ status: 400, body: { error: expect.any(String), message: expect.any(String) } });
      }
      const large = await delivery.postRaw(`/webhooks/${path}`, JSON.stringify({ service_name: 'x'.repeat(300_000) }));
      expect(large).toMatchObject({ status: 413, body: { error: expect.any(String) } });
    }
  });
});

test('of different deployments of one version in one second one is accepted, and only that is rolled back to', async () => {
  for (let round = 0; round < 5; round += 1) {
    nextSecond();
    const service_name = `svc-${randomUUID()}`;
    const urls = Array.from({ length: 12 }, (_, i) => `shop:build-${i}`);
    const answers = await Promise.all(
      urls.map((artifact_url) => delivery.post('/webhooks/deploy', { service_name, version: '1.0.0', artifact_url })),
    );
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(11);
    const accepted = urls[answers.findIndex(({ status }) => status === 200)];
    expect(await releasesOf(service_name)).toMatchObject([{ artifact_url: accepted }]);
    nextSecond();
    const { body } = await delivery.post('/webhooks/rollback', { service_name, version: '1.0.0' });
    expect((await delivery.jobs.get(String(body['job_id']))).spec.artifact).toEqual({ type: 'image', url: accepted });
  }
});

test.each([
  ['deploy', 'artifact_type', "'image', 'binary'"],
  ['deploy', 'strategy', "'rolling', 'blue-green', 'canary'"],
  ['notify', 'severity', "'info', 'warning', 'error', 'critical'"],
])('%s with an unknown %s is 400 with the values that there are', async (path, field, values) => {
  const body = { service_name: 'bad', ...image, channel: 'chat', message: 'm', [field]: 'magic' };
  const answer = await delivery.post(`/webhooks/${path}`, body);
  const message = `body/${field} must be equal to one of the allowed values: ${values}`;
  expect(answer).toMatchObject({ status: 400, body: { error: 'Invalid request', message } });
});

describe('contract 1, rollback', () => {
  test('uses what was delivered last with success, whatever was announced, asked for or tried since', async () => {
    const service_name = `svc-${randomUUID()}`;
    const tries = [
      { artifact_url: 'shop:first', outcome: 'success' },
      { artifact_url: 'shop:again', outcome: 'success' },
      { artifact_url: 'shop:broken', outcome: 'rolled_back' },
      { artifact_url: 'shop:worse', outcome: 'failed' },
    ] as const;
    for (const [minute, { artifact_url, outcome }] of tries.entries()) {
      nextSecond();
      expect((await delivery.post('/webhooks/deploy', { service_name, version: '1.0.0', artifact_url })).status).toBe(
        200,
      );
      await recordUpdate(delivery.pool, randomUUID(), {
        serviceName: service_name,
        newVersion: '1.0.0',
        finishedAt: new Date(Date.UTC(2026, 10, 20, 12, minute)),
        outcome,
        artifact: { url: artifact_url, type: 'image', checksum: undefined },
      });
    }
    await delivery.post('/webhooks/update', { service_name, version: '1.0.0', artifact_url: 'shop:announced' });
    const { body } = await delivery.post('/webhooks/rollback', { service_name, version: '1.0.0' });
    expect((await delivery.jobs.get(String(body['job_id']))).spec.artifact).toEqual({
      type: 'image',
      url: 'shop:again',
    });
  });

  test('uses artifact and checksum of the recorded release', async () => {
    const now = nextSecond();
    const announced = {
      service_name: 'pay',
      version: '0.9',
      artifact_url: 'https://x.example/pay',
      artifact_type: 'binary',
      checksum: sha256,
    };
    await delivery.post('/webhooks/update', announced);
    const answer = await delivery.post('/webhooks/rollback', { service_name: 'pay', version: '0.9' });
    const job_id = `rollback-pay-0.9-${now}`;
    expect(answer).toMatchObject({
      status: 200,
      body: { status: 'accepted', job_id, service_name: 'pay', version: '0.9' },
    });
    expect((await delivery.jobs.get(job_id)).spec).toEqual({
      serviceName: 'pay',
      operation: 'Rollback',
      version: '0.9',
      artifact: { type: 'binary', url: 'https://x.example/pay', checksum: sha256 },
      requestedBy: 'webhook',
      abort: false,
      promote: false,
    });
    const again = await delivery.post('/webhooks/rollback', { service_name: 'pay', version: '0.9' });
    expect(again.body['job_id']).toBe(job_id);
  });

  test('it may name a strategy, or be immediate; another wish within the second is 409', async () => {
    const service_name = 'pay-fast';
    await delivery.post('/webhooks/update', { service_name, version: '1', artifact_url: 'pay:1' });
    const back = (more: object) => delivery.post('/webhooks/rollback', { service_name, version: '1', ...more });
    const wishes = [
      [{ immediate: true }, { immediate: true }],
      [
        { immediate: true, strategy: 'rolling' },
        { immediate: true, strategy: 'Rolling' },
      ],
      [{ strategy: 'blue-green' }, { strategy: 'BlueGreen' }],
    ] as const;
    for (const [wish, spec] of wishes) {
      const at = nextSecond();
      const { body } = await back(wish);
      expect(body['job_id']).toBe(`rollback-pay-fast-1-${at}`);
      expect((await delivery.jobs.get(`rollback-pay-fast-1-${at}`)).spec).toMatchObject(spec);
      expect((await back({})).status).toBe(409);
    }
    nextSecond();
    expect((await back({ immediate: true, strategy: 'canary' })).status).toBe(400);
    expect((await back({ immediate: 'yes' })).status).toBe(400);
  });

  test('an unknown version is 404, and nothing is stored', async () => {
    nextSecond();
    const answer = await delivery.post('/webhooks/rollback', { service_name: 'pay', version: '0.1' });
    expect(answer).toMatchObject({
      status: 404,
      body: { error: 'Release not found', message: expect.stringContaining('pay') },
    });
    expect((await storedJobs()).filter((name) => name.startsWith('rollback-pay-0.1'))).toEqual([]);
  });

  test.each([
    { service_name: 'pay' },
    { version: '1' },
    { service_name: 'p p', version: '1' },
    { service_name: 'pay', version: '' },
    { service_name: 'pay', version: '.' },
    { service_name: 'pay', version: '..' },
    { service_name: 'pay', version: '1/2' },
    { service_name: 'pay', version: '1'.repeat(300) },
  ])('%j is 400', async (body) => {
    expect((await delivery.post('/webhooks/rollback', body)).status).toBe(400);
  });
});

describe('contract 1, update and check-updates', () => {
  test('an update is announced; again, it replaces the artifact', async () => {
    const service_name = `svc-${randomUUID()}`;
    const answer = await delivery.post('/webhooks/update', { service_name, ...image, unknown_field: 1 });
    expect(answer.body).toEqual({
      status: 'accepted',
      message: expect.stringContaining(service_name),
      service_name,
      version: '1.0.0',
    });
    await delivery.post('/webhooks/update', { service_name, ...image, artifact_url: 'shop:fixed', checksum: sha256 });
    expect(await releasesOf(service_name)).toMatchObject([
      { artifact_url: 'shop:fixed', artifact_type: 'image', checksum: sha256 },
    ]);
  });

  test('the current version is what the registration says, else the last success, else unknown', async () => {
    const service_name = `svc-${randomUUID()}`;
    const check = async () => (await delivery.post('/webhooks/check-updates', { service_name })).body;
    for (const version of ['1.10.0', '1.9.0']) {
      await delivery.post('/webhooks/update', { service_name, version, artifact_url: 'x' });
    }
    const answer = { status: 'checked', service_name, latest_version: '1.10.0' };
    expect(await check()).toEqual({ ...answer, current_version: '', update_available: true });
    await recordUpdate(delivery.pool, randomUUID(), { serviceName: service_name, newVersion: '1.9.0' });
    await recordUpdate(delivery.pool, randomUUID(), {
      serviceName: service_name,
      newVersion: '1.10.0',
      outcome: 'failed',
    });
    expect(await check()).toEqual({ ...answer, current_version: '1.9.0', update_available: true });
    delivery.registered.set(service_name, '');
    expect(await check()).toEqual({ ...answer, current_version: '1.9.0', update_available: true });
    delivery.registered.set(service_name, '1.10.0');
    expect(await check()).toEqual({ ...answer, current_version: '1.10.0', update_available: false });
    delivery.registered.set(service_name, '2.0.0');
    expect(await check()).toEqual({ ...answer, current_version: '2.0.0', update_available: false });
  });

  test('a version without order is the latest as long as no other is announced, and changes nothing of their order', async () => {
    const service_name = `svc-${randomUUID()}`;
    for (const [version, latest] of [
      ['9.9.9', '9.9.9'],
      ['build-7', 'build-7'],
      ['9.8.0', '9.9.9'],
      ['9.10.0', '9.10.0'],
    ]) {
      await delivery.post('/webhooks/update', { service_name, version, artifact_url: 'x' });
      const { body } = await delivery.post('/webhooks/check-updates', { service_name });
      expect(body).toMatchObject({ latest_version: latest, update_available: true });
    }
  });

  test('a registered service without releases is up to date; an unknown one is 404; a bad call 400', async () => {
    delivery.registered.set('lonely', '3');
    expect((await delivery.post('/webhooks/check-updates', { service_name: 'lonely' })).body).toMatchObject({
      current_version: '3',
      latest_version: '3',
      update_available: false,
    });
    const unknown = await delivery.post('/webhooks/check-updates', { service_name: 'nobody' });
    expect(unknown).toMatchObject({ status: 404, body: { error: 'Service not found', message: expect.any(String) } });
    for (const body of [{}, { service_name: 5 }, { service_name: 'a b' }]) {
      expect((await delivery.post('/webhooks/check-updates', body)).status).toBe(400);
    }
  });
});
