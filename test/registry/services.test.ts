import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { type Answer, startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';

const ISO_WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let namespace: TestNamespace;
let database: TestDatabase;
let registry: RunningService;

beforeAll(async () => {
  namespace = await createNamespace('services');
  database = await createDatabase();
  registry = await startRegistry({ namespace: namespace.name, databaseUrl: database.url });
});

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

function register(service_name: unknown, more: Record<string, unknown> = {}): Promise<Answer> {
  return registry.call('POST', '/services/register', { service_name, service_url: 'http://127.0.0.1:9000', ...more });
}

async function stored(resource: string): Promise<Record<string, unknown>[]> {
  const { items } = JSON.parse(await namespace.kubectl(['get', resource, '-o', 'json'])) as {
    items: Record<string, unknown>[];
  };
  return items;
}

/** Of all registrations. */
async function storedNames(): Promise<string[]> {
  return (await stored('serviceregistrations')).map((item) => (item['metadata'] as { name: string }).name);
}

/** The `services` of a list. */
function listed(answer: Answer): { service_name: string }[] {
  return (answer.body?.['services'] ?? []) as { service_name: string }[];
}

function pathOf(name: string): string {
  return `/services/${encodeURIComponent(name)}`;
}

describe('contract 1, registration', () => {
  test('register, read, list, heartbeat and unregister answer as documented', async () => {
    const registered = await register('shop', { capabilities: ['rest', 'graphql'] });
    expect(registered.status).toBe(200);
    expect(registered.body).toEqual({
      service_name: 'shop',
      service_url: 'http://127.0.0.1:9000',
      service_id: expect.stringMatching(UUID),
      registered_at: expect.stringMatching(ISO_WITH_OFFSET),
      capabilities: ['rest', 'graphql'],
      ttl: 60,
    });
    const record = {
      service_name: 'shop',
      service_url: 'http://127.0.0.1:9000',
      service_id: registered.body?.['service_id'],
      registered_at: registered.body?.['registered_at'],
      last_heartbeat: expect.stringMatching(ISO_WITH_OFFSET),
      capabilities: ['rest', 'graphql'],
    };
    const read = await registry.call('GET', '/services/shop');
    expect([read.status, read.body]).toEqual([200, record]);
    const list = await registry.call('GET', '/services');
    expect([list.status, list.body]).toEqual([200, { services: [record], total: 1 }]);
    const beat = await registry.call('POST', '/services/shop/heartbeat');
    expect([beat.status, beat.body]).toEqual([
      200,
      { service_name: 'shop', message: expect.stringContaining('shop'), ttl: 60 },
    ]);
    const removed = await registry.call('DELETE', '/services/shop');
    expect([removed.status, removed.body]).toEqual([
      200,
      { message: expect.stringContaining('shop'), service_name: 'shop' },
    ]);
    expect((await registry.call('GET', '/services')).body).toEqual({ services: [], total: 0 });
    expect(await stored('serviceregistrations')).toEqual([]);
  });

  test('what is not registered: 404 on read and removal, 400 on heartbeat', async () => {
    for (const [method, path, status] of [
      ['GET', '/services/nobody', 404],
      ['DELETE', '/services/nobody', 404],
      ['POST', '/services/nobody/heartbeat', 400],
      ['GET', '/services/no%3Abody', 404],
      ['DELETE', '/services/no%3Abody', 400],
    ] as const) {
      const answer = await registry.call(method, path);
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.body).toEqual({ error: expect.any(String), message: expect.any(String) });
    }
  });

  test('registering a live name changes URL and capabilities and keeps the id', async () => {
    const first = await register('again', { capabilities: ['rest'] });
    const second = await register('again', { service_url: 'https://elsewhere:8443/base', capabilities: ['grpc'] });
    expect(second.body).toMatchObject({
      service_id: first.body?.['service_id'],
      registered_at: first.body?.['registered_at'],
      service_url: 'https://elsewhere:8443/base',
      capabilities: ['grpc'],
    });
    expect((await registry.call('GET', '/services/again')).body).toMatchObject({ capabilities: ['grpc'] });
    await registry.call('DELETE', '/services/again');
    expect((await register('again')).body?.['service_id']).not.toBe(first.body?.['service_id']);
  });

  test('a registration and its Lease are there for kubectl, the Lease owned by the registration', async () => {
    const { body } = await register('visible');
    const [lease] = (await stored('leases')).filter((item) => JSON.stringify(item).includes('"visible"'));
    expect(lease).toMatchObject({
      metadata: { name: 'visible', ownerReferences: [{ kind: 'ServiceRegistration', uid: body?.['service_id'] }] },
      spec: { leaseDurationSeconds: 60, renewTime: expect.any(String) },
    });
    expect(await namespace.kubectl(['get', 'sreg', 'visible'])).toContain('http://127.0.0.1:9000');
  });

  test('a registration whose Lease was deleted accepts no heartbeat that would be lost', async () => {
    await register('orphan');
    await namespace.kubectl(['delete', 'lease', 'orphan']);
    await expect.poll(async () => (await registry.call('POST', '/services/orphan/heartbeat')).status).toBe(400);
    expect((await register('orphan')).status).toBe(200);
    expect((await registry.call('POST', '/services/orphan/heartbeat')).status).toBe(200);
    expect(await namespace.kubectl(['get', 'lease', 'orphan', '-o', 'name'])).toContain('orphan');
  });

  test('names of any case and script are legal, and those that look alike in Kubernetes do not collide', async () => {
    const names = [
      'Shop',
      'SHOP',
      'größe',
      'grösse',
      '日本',
      'a.b',
      'a-b',
      'a_b',
      'constructor',
      '__proto__',
      'x'.repeat(253),
      '😀?#%',
      '...',
    ];
    const ids = new Set<unknown>();
    for (const name of names) {
      const answer = await register(name);
      expect([name, answer.status]).toEqual([name, 200]);
      ids.add(answer.body?.['service_id']);
    }
    expect(ids.size).toBe(names.length);
    for (const name of names) {
      expect((await registry.call('GET', pathOf(name))).body?.['service_name']).toBe(name);
      expect((await registry.call('POST', `${pathOf(name)}/heartbeat`)).status).toBe(200);
      expect((await registry.call('DELETE', pathOf(name))).status).toBe(200);
    }
  });
});

describe('hostile input changes nothing', () => {
  let before: string[];

  beforeAll(async () => {
    before = await storedNames();
  });

  const bad: [string, unknown][] = [
    ['no body', undefined],
    ['an array', []],
    ['null', null],
    ['a missing name', { service_url: 'http://a' }],
    ['a missing URL', { service_name: 'bad' }],
    ['a numeric name', { service_name: 5, service_url: 'http://a' }],
    ['a URL that is an object', { service_name: 'bad', service_url: {} }],
    ['capabilities that are a string', { service_name: 'bad', service_url: 'http://a', capabilities: 'rest' }],
    ['an unknown capability', { service_name: 'bad', service_url: 'http://a', capabilities: ['soap'] }],
    ['a capability twice', { service_name: 'bad', service_url: 'http://a', capabilities: ['rest', 'rest'] }],
    ...['', ' ', 'a b', 'a:b', 'tab\t', 'nul\0', 'nbsp\u00a0', '*', '.', '..', 'a/b', 'x'.repeat(10_000)].map(
      (name): [string, unknown] => [
        `the name ${JSON.stringify(name).slice(0, 20)}`,
        { service_name: name, service_url: 'http://a' },
      ],
    ),
    ...[
      '',
      '/relative',
      'shop',
      'javascript:alert(1)',
      'ftp://a',
      'http://',
      'http://user:secret@a',
      'http://a b',
      'http://a/base?x=1',
      'http://a#top',
      'http://a:0',
      `http://a/${'x'.repeat(10_000)}`,
    ].map((url): [string, unknown] => [`the URL ${url.slice(0, 20)}`, { service_name: 'bad', service_url: url }]),
  ];

  test.each(bad)('%s: 400 in the error shape', async (_what, body) => {
    const answer = await registry.call('POST', '/services/register', body);
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: expect.any(String), message: expect.any(String) });
    expect(JSON.stringify(answer.body)).not.toContain('secret');
  });

  test.each([
    { what: 'malformed JSON', body: '{"service_name": "bad"', status: 400 },
    {
      what: 'a body over the limit',
      body: `{"service_name": "bad", "service_url": "${'x'.repeat(300_000)}"}`,
      status: 413,
    },
    { what: 'no JSON', body: 'service_name=bad', contentType: 'application/x-www-form-urlencoded', status: 415 },
    {
      what: 'a polluted prototype',
      body: '{"__proto__":{"service_name":"bad","service_url":"http://a"}}',
      status: 400,
    },
  ])('$what: refused', async ({ body, contentType = 'application/json', status }) => {
    const response = await fetch(`${registry.url}/api/v1/services/register`, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body,
    });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: expect.any(String), message: expect.any(String) });
  });

  test('the name of a Lease that is no heartbeat: refused, and the Lease is left alone', async () => {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'bad-elected' } };
    await namespace.kubectl(['create', '-f', '-'], {
      stdin: JSON.stringify({ ...lease, spec: { holderIdentity: 'somebody', leaseDurationSeconds: 15 } }),
    });
    const answer = await register('bad-elected');
    expect([answer.status, answer.body?.['error']]).toEqual([400, 'Invalid service name']);
    const kept = JSON.parse(await namespace.kubectl(['get', 'lease', 'bad-elected', '-o', 'json']));
    expect(kept.spec).toEqual({ holderIdentity: 'somebody', leaseDurationSeconds: 15 });
  });

  test('nothing of all that was stored', async () => {
    expect((await storedNames()).filter((name) => !before.includes(name))).toEqual([]);
  });
});

describe('reads', () => {
  test('lists filter by capability and by prefix, refuse an unknown capability', async () => {
    await register('filter-a', { capabilities: ['rest'] });
    await register('filter-b', { capabilities: ['grpc', 'rest'] });
    const names = async (query: string) => {
      return listed(await registry.call('GET', `/services?${query}`)).map((service) => service.service_name);
    };
    expect(await names('prefix=filter-')).toEqual(['filter-a', 'filter-b']);
    expect(await names('capability=grpc&prefix=filter-')).toEqual(['filter-b']);
    expect(await names('prefix=nothing-like-it')).toEqual([]);
    expect((await registry.call('GET', '/services?capability=soap')).status).toBe(400);
  });

  test('lists come in pages, in the order of names, and say how many there are in all', async () => {
    const names = Array.from({ length: 5 }, (_, index) => `page-${index}-é`);
    for (const name of names.toReversed()) await register(name, { metadata: { page: 'yes' } });
    const pages: string[][] = [];
    let cursor = '';
    do {
      const answer = await registry.call('GET', `/services?metadata.page=yes&limit=2${cursor}`);
      expect(answer.body?.['total']).toBe(5);
      pages.push(listed(answer).map((service) => service.service_name));
      const { next_cursor: next } = answer.body ?? {};
      cursor = typeof next === 'string' ? `&cursor=${next}` : '';
    } while (cursor !== '');
    expect(pages).toEqual([names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
    for (const query of [
      'limit=0',
      'limit=1001',
      'cursor=%00',
      'cursor=',
      'metadata.page=a&metadata.page=b',
      'helthy=true',
      'Zone=a',
    ]) {
      expect([query, (await registry.call('GET', `/services?${query}`)).status]).toEqual([query, 400]);
    }
  });

  test('a list is compressed where its caller accepts that', async () => {
    for (let index = 0; index < 8; index += 1) await register(`compressed-${index}`);
    for (const encoding of ['gzip', 'br', 'identity']) {
      const headers = { 'accept-encoding': encoding };
      const answer = await fetch(`${registry.url}/api/v1/services?prefix=compressed-`, { headers });
      expect(answer.headers.get('content-encoding')).toBe(encoding === 'identity' ? null : encoding);
      expect(await answer.json()).toMatchObject({ total: 8 });
    }
  });

  test('an ETag answers 304 until a change makes it stale, and a heartbeat does not', async () => {
    await register('tagged');
    for (const path of ['/services/tagged', '/services']) {
      let tag = '';
      const conditional = () =>
        fetch(`${registry.url}/api/v1${path}`, { headers: { 'if-none-match': `"x", ${tag.replace('W/', '')}` } });
      const unchanged = async () => {
        tag = (await registry.call('GET', path)).headers.get('etag') ?? '';
        return (await conditional()).status;
      };
      // The watch may bring what was just registered between two requests.
      await expect.poll(unchanged).toBe(304);
      await registry.call('POST', '/services/tagged/heartbeat');
      expect((await conditional()).status).toBe(304);
      await register('tagged', { service_url: `http://changed${path}` });
      expect((await conditional()).status).toBe(200);
    }
  });

  test('last_heartbeat is exact at once, also of a heartbeat that is not written yet', async () => {
    await register('exact');
    const lastHeartbeat = async () => String((await registry.call('GET', '/services/exact')).body?.['last_heartbeat']);
    const before = await lastHeartbeat();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await registry.call('POST', '/services/exact/heartbeat');
    expect(Date.parse(await lastHeartbeat())).toBeGreaterThan(Date.parse(before));
  });

  test('health reports the cache, and both metrics paths are there', async () => {
    const { status, body } = await registry.call('GET', '/health');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'healthy',
      service: 'registry',
      version: expect.any(String),
      store: 'connected',
      cache: {
        size: expect.any(Number),
        hits: expect.any(Number),
        misses: expect.any(Number),
        hit_ratio: expect.any(Number),
        last_refresh: expect.stringMatching(ISO_WITH_OFFSET),
      },
    });
    expect(await (await fetch(`${registry.url}/api/v1/metrics`)).text()).toContain('rollcall_registry_services');
    expect(await (await fetch(`${registry.adminUrl}/metrics`)).text()).toContain('http_request_duration_seconds');
  });

  test('the OpenAPI 3.1 document names the documented paths, and its page shows without the network', async () => {
    const { body } = await registry.call('GET', '/openapi.json');
    expect(body?.['openapi']).toBe('3.1.0');
    expect(Object.keys(body?.['paths'] as object)).toEqual(
      expect.arrayContaining(['/services/register', '/services/{service_name}/heartbeat', '/health']),
    );
    const url = `${registry.url}/api/v1/docs`;
    const page = await fetch(url);
    expect(page.status).toBe(200);
    const html = await page.text();
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => new URL(path, url));
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) {
      expect(asset.origin).toBe(registry.url);
      expect([asset.pathname, (await fetch(asset)).status]).toEqual([asset.pathname, 200]);
    }
  });
});

describe('what services say of themselves', () => {
  test('health and lifecycle land in the status, side by side, and the version with them', async () => {
    await register('talker');
    const details = { version: '1.4.0', uptime: 12, nested: { deep: [1] } };
    const health = await registry.call('POST', '/webhooks/health', {
      service_name: 'talker',
      status: 'healthy',
      timestamp: '2026-11-20T10:00:00+02:00',
      details,
    });
    expect([health.status, health.body]).toEqual([
      200,
      { status: 'received', message: expect.stringContaining('talker') },
    ]);
    const lifecycle = await registry.call('POST', '/webhooks/lifecycle', {
      service_name: 'talker',
      event: 'started',
      details: { pid: 7 },
    });
    expect(lifecycle.status).toBe(200);
    const [item] = (await stored('serviceregistrations')).filter((each) => JSON.stringify(each).includes('"talker"'));
    expect(item?.['status']).toMatchObject({
      currentVersion: '1.4.0',
      health: { status: 'healthy', reportedAt: '2026-11-20T08:00:00.000Z', details },
      lifecycle: { event: 'started', details: { pid: 7 } },
    });
    await registry.call('POST', '/webhooks/health', {
      service_name: 'talker',
      status: 'degraded',
      details: { uptime: 13 },
    });
    const [later] = (await stored('serviceregistrations')).filter((each) => JSON.stringify(each).includes('"talker"'));
    expect(later).toHaveProperty('status.health.details', { uptime: 13 });
    expect(later?.['status']).toMatchObject({ currentVersion: '1.4.0', lifecycle: { event: 'started' } });
  });

  test.each([
    ['an unknown service', { service_name: 'stranger', status: 'healthy' }, 404],
    ['no status', { service_name: 'talker' }, 400],
    ['a bad time', { service_name: 'talker', status: 'ok', timestamp: 'yesterday' }, 400],
    ['a day that there is not', { service_name: 'talker', status: 'ok', timestamp: '2026-02-30T00:00:00Z' }, 400],
    ['a line feed in the status', { service_name: 'talker', status: 'x\ny' }, 400],
    ['an escape in the status', { service_name: 'talker', status: '\u001b[31m' }, 400],
    ['text that runs backwards', { service_name: 'talker', status: 'ok\u202e' }, 400],
    ['a line feed in the version', { service_name: 'talker', status: 'ok', details: { version: 'a\nb' } }, 400],
    ['an escape in the details', { service_name: 'talker', status: 'ok', details: { a: [{ b: '\u009b' }] } }, 400],
    ['an escape in a name there', { service_name: 'talker', status: 'ok', details: { 'a\u0007': 1 } }, 400],
    ['details that are a list', { service_name: 'talker', status: 'ok', details: [1] }, 400],
    ['details that are too large', { service_name: 'talker', status: 'ok', details: { x: 'y'.repeat(20_000) } }, 400],
  ])('%s is refused', async (_what, body, status) => {
    await register('talker');
    expect((await registry.call('POST', '/webhooks/health', body)).status).toBe(status);
  });
});
