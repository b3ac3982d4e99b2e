import { randomUUID } from 'node:crypto';
import { objectNameFor, webhookConfigKind } from '@rollcall/crds/kinds.ts';
import type { WebhookConfig } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { type Secret, secretKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection, KubeRequest } from '@rollcall/platform/kube/connection.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createCallLedger } from '@rollcall/platform/webhooks/call-ledger.ts';
import { sign } from '@rollcall/platform/webhooks/signatures.ts';
import { configureWebhooks } from '@rollcall/registry/webhooks/domain/webhook-configs.ts';
import type { WebhookConfigStore } from '@rollcall/registry/webhooks/domain/webhook-settings.ts';
import { createWebhookConfigs } from '@rollcall/registry/webhooks/store/webhook-configs.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type Answer, type DeliveryFixture, startDelivery } from './fixture.ts';

const ISO_WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;

/** Where all secrets are kept. */
const SECRET = 'rollcall-webhooks';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let configs: ResourceClient<WebhookConfig>;
let secrets: ResourceClient<Secret>;

beforeAll(async () => {
  namespace = await createNamespace('configs');
  database = await createDatabase();
  delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url });
  configs = resourceClient(delivery.connection, webhookConfigKind, namespace.name);
  secrets = resourceClient(delivery.connection, secretKind, namespace.name);
});

afterAll(async () => {
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

function configure(body: object, headers?: Record<string, string>): Promise<Answer> {
  return delivery.post('/webhooks/config', body, headers);
}

async function read(service_name: string): Promise<Answer> {
  return delivery.get(`/webhooks/config?service_name=${encodeURIComponent(service_name)}`);
}

async function list<T>(resource: string): Promise<T[]> {
  return JSON.parse(await namespace.kubectl(['get', resource, '-o', 'json'])).items;
}

/** Keys in the Secret of all that are those of a service's object. */
async function keysOf(objectName: string): Promise<string[]> {
  const keys = Object.keys((await secrets.find(SECRET))?.data ?? {});
  return keys.filter(
    (key) => key.startsWith(`${objectName}.`) && /^[0-9a-f]{16}$/.test(key.slice(objectName.length + 1)),
  );
}

/** What the configuration of this name refers to. */
async function valueOf(objectName: string): Promise<string> {
  const { name = '', key = '' } = (await configs.get(objectName)).spec.secretRef ?? {};
  return Buffer.from((await secrets.get(name)).data?.[key] ?? '', 'base64').toString();
}

async function storedState(): Promise<unknown> {
  const { rows } = await delivery.pool.query('SELECT * FROM releases ORDER BY service_name, version');
  return {
    rows,
    jobs: (await list('deliveryjobs')).length,
    configs: (await list<WebhookConfig>('webhookconfigs')).map((c) => c.spec),
  };
}

describe('contract 1, webhook configuration', () => {
  test('what is set is what is read, and what kubectl shows', async () => {
    const endpoints = { slack: 'https://hooks.example.com/a?b=c', größe: 'http://127.0.0.1:9/x' };
    const answer = await configure({ service_name: 'shop', endpoints });
    expect(answer).toMatchObject({
      status: 200,
      body: { status: 'configured', message: expect.stringContaining("'shop'") },
    });
    expect((await read('shop')).body).toEqual({
      service_name: 'shop',
      endpoints,
      signed: false,
      configured_at: expect.stringMatching(ISO_WITH_OFFSET),
    });
    expect((await configs.get('shop')).spec).toEqual({ serviceName: 'shop', endpoints });
  });

  test('a later call replaces the endpoints wholly, also those that others added', async () => {
    await configure({ service_name: 'whole', endpoints: { a: 'http://a/', b: 'http://b/' } });
    const { configured_at } = (await read('whole')).body;
    await namespace.kubectl([
      'patch',
      'webhookconfig',
      'whole',
      '--type=merge',
      '-p',
      '{"spec":{"endpoints":{"x":"http://x/"}}}',
    ]);
    await configure({ service_name: 'whole', endpoints: { c: 'http://c/' } });
    const { body } = await read('whole');
    expect(body['endpoints']).toEqual({ c: 'http://c/' });
    expect(String(body['configured_at']) > String(configured_at)).toBe(true);
    await configure({ service_name: 'whole', endpoints: {} });
    expect((await read('whole')).body['endpoints']).toEqual({});
  });

  test('the global configuration is empty until it is set; a service without one is 404', async () => {
    for (const path of ['/webhooks/config', '/webhooks/config?service_name=*']) {
      expect(await delivery.get(path)).toMatchObject({ status: 200, body: { service_name: '*', endpoints: {} } });
    }
    await configure({ endpoints: { ops: 'http://ops/' } });
    expect((await delivery.get('/webhooks/config')).body).toEqual({
      service_name: '*',
      endpoints: { ops: 'http://ops/' },
      signed: false,
      configured_at: expect.stringMatching(ISO_WITH_OFFSET),
    });
    await configure({ service_name: '*', endpoints: { ops: 'http://ops2/' } });
    expect((await read('*')).body['endpoints']).toEqual({ ops: 'http://ops2/' });
    expect(await read('nobody')).toMatchObject({ status: 404, body: { error: 'Configuration not found' } });
    expect((await read('a b')).status).toBe(400);
    expect((await read('')).status).toBe(400);
  });

  test('a configuration applied by hand counts, whatever its object is called', async () => {
    const serviceName = 'By,Hand=1';
    const manifest = {
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'WebhookConfig',
      metadata: { name: 'my-hooks' },
      spec: { serviceName, endpoints: { chat: 'http://chat/' } },
    };
    await namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(manifest) });
    expect((await read(serviceName)).body).toMatchObject({
      service_name: serviceName,
      endpoints: { chat: 'http://chat/' },
    });
    await configure({ service_name: serviceName, endpoints: { mail: 'http://mail/' } });
    expect((await configs.get('my-hooks')).spec.endpoints).toEqual({ mail: 'http://mail/' });
    expect(await configs.find(objectNameFor(serviceName))).toBeUndefined();
  });

  const url = 'http://x/';
  test.each([
    ['no endpoints', { service_name: 'bad' }],
    ['endpoints as a list', { service_name: 'bad', endpoints: [] }],
    ['a number as URL', { service_name: 'bad', endpoints: { a: 1 } }],
    ['a relative URL', { service_name: 'bad', endpoints: { a: '/x' } }],
    ['javascript:', { service_name: 'bad', endpoints: { a: 'javascript:alert(1)' } }],
    ['credentials', { service_name: 'bad', endpoints: { a: 'https://user:hunter2@x/' } }],
    ['a long URL', { service_name: 'bad', endpoints: { a: `http://x/${'y'.repeat(2048)}` } }],
    ['an empty channel', { service_name: 'bad', endpoints: { '': url } }],
    ['a channel with a space', { service_name: 'bad', endpoints: { 'a b': url } }],
    ['a long channel', { service_name: 'bad', endpoints: { ['c'.repeat(65)]: url } }],
    [
      '65 channels',
      { service_name: 'bad', endpoints: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`c${i}`, url])) },
    ],
    ['an empty secret', { service_name: 'bad', endpoints: {}, secret: '' }],
    ['a number as secret', { service_name: 'bad', endpoints: {}, secret: 5 }],
    ['a short secret', { service_name: 'bad', endpoints: {}, secret: 'only 15 letters' }],
    ['a long secret', { service_name: 'bad', endpoints: {}, secret: 'x'.repeat(1025) }],
    ['an illegal name', { service_name: 'a:b', endpoints: {} }],
    ['an empty name', { service_name: '', endpoints: {} }],
  ])('%s: 400, nothing is stored and no URL repeated', async (_name, body) => {
    const answer = await configure(body);
    expect(answer).toMatchObject({ status: 400, body: { error: expect.any(String), message: expect.any(String) } });
    expect(answer.text).not.toContain('hunter2');
    expect((await read('bad')).status).toBe(404);
  });

  test('64 channels are accepted', async () => {
    const endpoints = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`${'c'.repeat(60)}${i}`, url]));
    expect((await configure({ service_name: 'many', endpoints })).status).toBe(200);
    expect((await read('many')).body['endpoints']).toEqual(endpoints);
  });
});

/** As in a key. */
function hoursAgo(hours: number): string {
  return Math.floor(Date.now() / 1000 - hours * 3600).toString(16);
}

describe('secrets', () => {
  test('a secret is kept under a key of its own in the Secret of all, and nowhere else', async () => {
    const secret = `s3cret-${randomUUID()}`;
    const first = await configure({ service_name: 'safe', endpoints: {}, secret });
    expect(first.status).toBe(200);
    const { spec } = await configs.get('safe');
    expect(spec.secretRef).toEqual({ name: SECRET, key: expect.stringMatching(/^safe\.[0-9a-f]{16}$/) });
    expect(await valueOf('safe')).toBe(secret);

    const shown = [
      first.text,
      (await read('safe')).text,
      (await configure({ service_name: 'safe', endpoints: {} }, { 'x-webhook-signature': 'sha256=00' })).text,
      (await configure({ service_name: 'safe', endpoints: {}, secret: `${secret}x` })).text,
      (await configure({ service_name: 'safe', endpoints: { a: 'nonsense' }, secret })).text,
      await namespace.kubectl(['get', 'webhookconfigs', '-o', 'json', '--show-managed-fields']),
      await namespace.kubectl(['get', 'events', '-o', 'json']),
      delivery.logs(),
    ].join('\n');
    expect(shown).toContain('safe');
    for (const form of [secret, Buffer.from(secret).toString('base64')]) expect(shown).not.toContain(form);
  });

  test('a later call without a secret keeps it; one with another replaces it and removes the old', async () => {
    await configure({ service_name: 'rotate', endpoints: {}, secret: 'one-and-long-enough' });
    const { secretRef } = (await configs.get('rotate')).spec;
    await configure({ service_name: 'rotate', endpoints: { a: 'http://a/' }, webhook_secret: 'one-and-long-enough' });
    expect((await configs.get('rotate')).spec.secretRef).toEqual(secretRef);
    expect(
      (
        await configure({
          service_name: 'rotate',
          endpoints: {},
          webhook_secret: 'one-and-long-enough',
          secret: 'two-and-long-enough',
        })
      ).status,
    ).toBe(200);
    expect(await keysOf('rotate')).toEqual([(await configs.get('rotate')).spec.secretRef?.key]);
    expect(await keysOf('rotate')).not.toEqual([secretRef?.key]);
    expect(
      (await configure({ service_name: 'rotate', endpoints: {}, webhook_secret: 'one-and-long-enough' })).status,
    ).toBe(401);
    expect((await configure({ service_name: 'rotate', endpoints: {}, secret: 'two-and-long-enough' })).status).toBe(
      200,
    );
  });

  test('what no configuration has named for an hour is removed by the next change, and so are own leftovers', async () => {
    await configure({ service_name: 'crash', endpoints: {}, secret: 'x-and-long-enough' });
    await configure({ service_name: 'gone', endpoints: {}, secret: 'x-and-long-enough' });
    const [young = ''] = await keysOf('gone');
    await configs.delete('gone');
    const keys = {
      left: `crash.${hoursAgo(0)}00000000`,
      old: `gone.${hoursAgo(2)}00000000`,
      younger: `gone.${hoursAgo(0.9)}00000000`,
      named: `by-hand.${hoursAgo(2)}00000000`,
      foreign: 'something-else',
    };
    await secrets.patch(SECRET, { data: Object.fromEntries(Object.values(keys).map((key) => [key, 'eA=='])) });
    await configs.create({
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'WebhookConfig',
      metadata: { name: 'other-name' },
      spec: { serviceName: 'by-hand', endpoints: {}, secretRef: { name: SECRET, key: keys.named } },
    });
    await configure({
      service_name: 'crash',
      endpoints: {},
      secret: 'y-and-long-enough',
      webhook_secret: 'x-and-long-enough',
    });
    const left = Object.keys((await secrets.get(SECRET)).data ?? {});
    const own = (await configs.get('crash')).spec.secretRef?.key;
    expect(left).toEqual(expect.arrayContaining([own, young, keys.younger, keys.named, keys.foreign]));
    expect(left).not.toContain(keys.old);
    expect(await keysOf('crash')).toEqual([own]);
  });

  test('the keys of a service are not those of another whose object name begins alike', async () => {
    const [short, long] = ['a', 'A'];
    await configure({ service_name: long, endpoints: {}, secret: 'long-and-long-enough' });
    await configure({ service_name: short, endpoints: {}, secret: 'short-and-long-enough' });
    await configure({
      service_name: short,
      endpoints: {},
      secret: 'shorter-and-long-enough',
      webhook_secret: 'short-and-long-enough',
    });
    expect(objectNameFor(long)).toMatch(/^a\.[0-9a-f]{16}$/);
    expect([await valueOf(objectNameFor(long)), await valueOf(short)]).toEqual([
      'long-and-long-enough',
      'shorter-and-long-enough',
    ]);
  });

  test('many changes at once leave one whole configuration, whose Secret is there', async () => {
    const changes = Array.from({ length: 12 }, (_, i) =>
      configure({ service_name: 'race', endpoints: { a: `http://a/${i}` }, secret: secretOf(i) }),
    );
    const answers = await Promise.all(changes);
    const { spec } = await configs.get('race');
    const winner = Number(spec.endpoints['a']?.split('/').at(-1));
    expect(answers[winner]?.status).toBe(200);
    for (const { status } of answers) expect([200, 401, 503]).toContain(status);
    expect(await valueOf('race')).toBe(secretOf(winner));
    expect(await keysOf('race')).toEqual([spec.secretRef?.key]);
  });
});

function secretOf(change: number): string {
  return `the secret of change ${change}`;
}

/** The real store, with something that happens just before its first write of a configuration. */
function overtakenStore(overtake: () => Promise<unknown>): WebhookConfigStore {
  let overtaken = false;
  const connection: KubeConnection = {
    ...delivery.connection,
    async request<T>(request: KubeRequest): Promise<T> {
      if (!overtaken && request.method !== 'GET' && request.path.includes('/webhookconfigs')) {
        overtaken = true;
        await overtake();
      }
      return delivery.connection.request<T>(request);
    },
  };
  const log = createLogger('test', 'silent');
  return createWebhookConfigs({
    connection,
    namespace: namespace.name,
    secretName: SECRET,
    clock: systemClock,
    log,
    onWrite: () => undefined,
  });
}

describe('a configuration call that another one overtakes between its read and its write', () => {
  const theirs = { url: 'http://theirs/' };
  const ours = { url: 'http://ours/' };
  interface Race {
    readonly before: object | undefined;
    readonly overtaking: object;
    /** What our call brings as proof, and the secret that it is to set. */
    readonly proof?: string;
    readonly secret?: string;
  }

  async function race(service_name: string, { before, overtaking, proof, secret }: Race): Promise<void> {
    if (before !== undefined) await configure({ service_name, endpoints: {}, ...before });
    const store = overtakenStore(async () => {
      const answer = await configure({ service_name, endpoints: theirs, ...overtaking });
      expect(answer.status).toBe(200);
    });
    const replacement = { serviceName: service_name, endpoints: ours, secret };
    const none = { id: undefined, timestamp: undefined, signature: undefined };
    const path = '/api/v1/webhooks/config';
    const bytes = { path, subject: undefined, body: Buffer.from('{}'), signature: undefined, timestamp: undefined };
    const rules = { allowUnsigned: true, legacySignatures: false, plainSignatures: true };
    await configureWebhooks(
      { configs: store, calls: createCallLedger(() => delivery.pool), rules, clock: systemClock },
      replacement,
      { ...bytes, isBound: true, isHarmless: false, standard: none, secrets: [proof, secret] },
    );
  }

  test.each<[string, Race]>([
    ['new', { before: undefined, overtaking: { secret: 'theirs-and-long-enough' }, secret: 'ours-and-long-enough' }],
    ['free', { before: {}, overtaking: { secret: 'theirs-and-long-enough' } }],
    ['seized', { before: {}, overtaking: { secret: 'theirs-and-long-enough' }, secret: 'ours-and-long-enough' }],
    [
      'rotated',
      {
        before: { secret: 'one-and-long-enough' },
        overtaking: { secret: 'two-and-long-enough', webhook_secret: 'one-and-long-enough' },
        proof: 'one-and-long-enough',
      },
    ],
  ])('is refused where it cannot show the secret that was just set: %s', async (what, overtaken) => {
    const name = `overtaken-${what}`;
    await expect(race(name, overtaken)).rejects.toMatchObject({ code: 'INVALID_SIGNATURE' });
    const { spec } = await configs.get(name);
    expect(spec.endpoints).toEqual(theirs);
    expect(await keysOf(name)).toEqual([spec.secretRef?.key]);
  });

  test.each<[string, Race]>([
    ['open', { before: {}, overtaking: {} }],
    ['made', { before: undefined, overtaking: {}, secret: 'ours-and-long-enough' }],
    [
      'agreed',
      {
        before: {},
        overtaking: { secret: 'same-and-long-enough' },
        secret: 'same-and-long-enough',
        proof: 'same-and-long-enough',
      },
    ],
  ])('is carried out where it may be: %s', async (what, overtaken) => {
    const name = `overtaken-${what}`;
    await race(name, overtaken);
    expect((await configs.get(name)).spec.endpoints).toEqual(ours);
  });
});

describe('a secret that would be dropped', () => {
  const update = { service_name: 'bare', version: '1.0.0', artifact_url: 'bare:1.0.0' };

  test.each([
    ['/webhooks/config', { service_name: 'bare', endpoints: {}, webhook_secret: 'sixteen-or-longer' }],
    ['/webhooks/update', { ...update, webhook_secret: 'sixteen-or-longer' }],
    ['/webhooks/deploy', { ...update, secret: 'sixteen-or-longer' }],
  ])('proves nothing at %s, and is refused: %j', async (path, body) => {
    const before = await storedState();
    const answer = await delivery.post(path, body);
    expect(answer).toMatchObject({
      status: 401,
      body: { error: 'Invalid signature', message: expect.stringMatching(/field secret/) },
    });
    expect(JSON.stringify(answer.body)).not.toContain('sixteen');
    expect(await storedState()).toEqual(before);
  });

  test.each([
    ['/webhooks/config', { service_name: 'bare', endpoints: {}, Secret: 'sixteen-or-longer' }, /'secret' may be meant/],
    ['/webhooks/config', { service_name: 'bare', endpoints: {}, secert: 'sixteen-or-longer' }, /'secret' may be meant/],
    ['/webhooks/update', { ...update, webhookSecret: 'sixteen-or-longer' }, /'webhook_secret' may be meant/],
    ['/webhooks/deploy', { ...update, cheksum: 'sha256:0' }, /'checksum' may be meant/],
    ['/webhooks/check-updates', { service_name: 'bare', webhook_secret: 'x' }, /may not have 'webhook_secret'/],
  ])('is refused at %s: %j', async (path, body, reason) => {
    const before = await storedState();
    const answer = await delivery.post(path, body);
    expect(answer).toMatchObject({
      status: 400,
      body: { error: 'Invalid request', message: expect.stringMatching(reason) },
    });
    expect(JSON.stringify(answer.body)).not.toContain('sixteen');
    expect(await storedState()).toEqual(before);
  });

  test('shows in the configuration where it is not: calls are signed, or are not', async () => {
    await configure({ service_name: 'described', endpoints: {} });
    expect((await read('described')).body['signed']).toBe(false);
    await configure({ service_name: 'described', endpoints: {}, secret: 'sixteen-or-longer' });
    expect((await read('described')).body['signed']).toBe(true);
    expect((await delivery.post('/webhooks/deploy', { ...update, service_name: 'described' })).status).toBe(401);
  });

  test('an empty one counts as none', async () => {
    expect((await delivery.post('/webhooks/update', { ...update, webhook_secret: '' })).status).toBe(200);
  });
});

describe('signatures', () => {
  const release = { version: '1.0.0', artifact_url: 'locked:1.0.0' };
  const calls = [
    ['/webhooks/update', release],
    ['/webhooks/deploy', release],
    ['/webhooks/rollback', { version: '1.0.0' }],
    ['/webhooks/config', { endpoints: { a: 'http://changed/' } }],
  ] as const;

  test.each(calls)('%s without a valid signature or secret: 401, and nothing changes', async (path, more) => {
    await configure({
      service_name: 'locked',
      endpoints: {},
      secret: 'k3y-and-long-enough',
      webhook_secret: 'k3y-and-long-enough',
    });
    const before = await storedState();
    const body = JSON.stringify({ service_name: 'locked', ...more });
    const withSecret = JSON.stringify({ service_name: 'locked', ...more, webhook_secret: 'K3Y-and-long-enough' });
    for (const [sent, headers] of [
      [body, {}],
      [withSecret, {}],
      [body, { 'x-webhook-signature': '' }],
      [body, { 'x-webhook-signature': sign('other-and-long-enough', body) }],
      [body, { 'x-webhook-signature': sign('k3y-and-long-enough', `${body} `) }],
      [body, { 'x-webhook-signature': sign('k3y-and-long-enough', body).replace('sha256', 'sha512') }],
      [JSON.stringify({ service_name: 'locked', ...more, webhook_secret: '' }), {}],
    ] as const) {
      const answer = await delivery.postRaw(path, sent, headers);
      expect(answer).toMatchObject({ status: 401, body: { error: 'Invalid signature', message: expect.any(String) } });
    }
    expect(await storedState()).toEqual(before);
  });

  test.each(calls)('%s with one is carried out', async (path, more) => {
    await configure({
      service_name: 'open',
      endpoints: {},
      secret: 'größe-and-long-enough',
      webhook_secret: 'größe-and-long-enough',
    });
    await delivery.post('/webhooks/update', {
      service_name: 'open',
      ...release,
      webhook_secret: 'größe-and-long-enough',
    });
    // White space and order as no serialiser would write them: the bytes are what is signed.
    const body = ` {"x":1.0,  "service_name" : "open", ${JSON.stringify(more).slice(1)} `;
    const signature = sign('größe-and-long-enough', body);
    expect((await delivery.postRaw(path, body, { 'x-webhook-signature': signature })).status).toBe(200);
    const bare = signature.replace('sha256=', '').toUpperCase();
    expect((await delivery.postRaw(path, body, { 'x-webhook-signature': bare })).status).toBe(200);
    expect(
      (await delivery.post(path, { service_name: 'open', ...more, webhook_secret: 'größe-and-long-enough' })).status,
    ).toBe(200);
  });

  test('the global secret protects services without one of their own', async () => {
    await configure({ service_name: 'own', endpoints: {}, secret: 'own-and-long-enough' });
    await configure({ service_name: 'half', endpoints: {} });
    await configure({ endpoints: {}, secret: 'global-and-long-enough' });
    try {
      const update = (service_name: string, webhook_secret?: string) =>
        delivery.post('/webhooks/update', {
          service_name,
          ...release,
          ...(webhook_secret === undefined ? {} : { webhook_secret }),
        });
      for (const service of ['half', 'never-configured']) {
        expect((await update(service)).status).toBe(401);
        expect((await update(service, 'global-and-long-enough')).status).toBe(200);
      }
      expect((await update('own', 'global-and-long-enough')).status).toBe(401);
      expect((await update('own', 'own-and-long-enough')).status).toBe(200);
      expect((await configure({ endpoints: {} })).status).toBe(401);
      expect((await configure({ service_name: 'new', endpoints: {} })).status).toBe(401);
    } finally {
      await configs.delete(objectNameFor('*'));
    }
  });

  test('a secret that was set and is gone does not open the door', async () => {
    await configure({ service_name: 'lost', endpoints: {}, secret: 'x-and-long-enough' });
    const { key = '' } = (await configs.get('lost')).spec.secretRef ?? {};
    await secrets.patch(SECRET, { data: { [key]: null } });
    const answer = await delivery.post('/webhooks/update', {
      service_name: 'lost',
      ...release,
      webhook_secret: 'x-and-long-enough',
    });
    const missing = { error: 'Secret is missing', message: expect.stringContaining('lost') };
    expect(answer).toMatchObject({ status: 503, body: missing });
    expect(
      (await delivery.post('/webhooks/update', { service_name: 'lost', ...release, webhook_secret: '' })).status,
    ).toBe(503);
  });

  test('checking for updates needs none, notifying does', async () => {
    await configure({
      service_name: 'locked',
      endpoints: {},
      secret: 'k3y-and-long-enough',
      webhook_secret: 'k3y-and-long-enough',
    });
    delivery.registered.set('locked', '1');
    expect((await delivery.post('/webhooks/check-updates', { service_name: 'locked' })).status).toBe(200);
    const notification = { service_name: 'locked', channel: 'x', message: 'm' };
    expect((await delivery.post('/webhooks/notify', notification)).status).toBe(401);
    const proven = { ...notification, webhook_secret: 'k3y-and-long-enough' };
    expect((await delivery.post('/webhooks/notify', proven)).status).toBe(404);
  });
});
