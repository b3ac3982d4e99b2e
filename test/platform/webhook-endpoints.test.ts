import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Caller, idOf } from '../payment/billing-service.ts';
import { type EventWorld, SCOPE, startEventWorld } from './webhooks.ts';

const stack = new AsyncDisposableStack();
let world: EventWorld;
let shop: Caller;
let other: Caller;

beforeAll(async () => {
  // As in production: the internet alone.
  world = stack.use(await startEventWorld({ ROLLCALL_WEBHOOK_ADDRESSES: 'public' }));
  [shop, other] = await Promise.all([world.callerOf('shop'), world.callerOf('other')]);
});

afterAll(() => stack.disposeAsync());

const url = 'https://shop.example/hook?token=t0ken';

test('an endpoint is made, changed, listed and forgotten, and its secret shown once', async () => {
  const made = await shop.post('/webhook-endpoints', { url, description: 'Till' });
  expect(made.status).toBe(201);
  const path = `/webhook-endpoints/${idOf(made)}`;
  expect(made.headers.get('location')).toBe(path.slice(1));
  const { secret, ...shown } = made.body ?? {};
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(shown).toMatchObject({ url, eventTypes: ['*'], description: 'Till', status: 'enabled', disabledReason: null });
  expect((await shop.get(path)).body).toEqual(shown);
  const changed = await shop.patch(path, { eventTypes: ['refund.*', 'payment.succeeded'], description: null });
  expect(changed.body).toEqual({ ...shown, eventTypes: ['refund.*', 'payment.succeeded'], description: null });
  expect((await shop.get('/webhook-endpoints')).body).toMatchObject({ total: 1, webhookEndpoints: [changed.body] });
  expect((await shop.delete(path)).status).toBe(204);
  expect((await shop.get(path)).status).toBe(404);
  expect((await shop.delete(path)).status).toBe(404);
});

test('a call that is repeated makes one endpoint, and shows the same secret', async () => {
  const key = randomUUID();
  const calls = await Promise.all(Array.from({ length: 5 }, () => shop.post('/webhook-endpoints', { url }, key)));
  expect(new Set(calls.map(({ status, body }) => `${status} ${JSON.stringify(body)}`)).size).toBe(1);
  const { rows } = await world.pool.query('SELECT id FROM webhook_endpoints');
  expect(rows).toHaveLength(1);
});

test('neither URL nor secret are in the database for all to read', async () => {
  const { rows } = await world.pool.query<{ settings: Buffer }>('SELECT * FROM webhook_endpoints');
  expect(rows).not.toEqual([]);
  const text = rows.map((row) => Buffer.concat([row.settings, Buffer.from(JSON.stringify(row))]).toString('latin1'));
  expect(text.join()).not.toMatch(/whsec_|t0ken|shop\.example/);
});

test('endpoints are of their subject alone, but for who administers payments', async () => {
  const path = `/webhook-endpoints/${idOf(await shop.post('/webhook-endpoints', { url }))}`;
  for (const answer of [await other.get(path), await other.patch(path, { enabled: false }), await other.delete(path)]) {
    expect(answer.status).toBe(404);
  }
  expect((await other.get('/webhook-endpoints')).body).toMatchObject({ total: 0 });
  const admin = await world.service.callerOf('root', `${SCOPE} payments:admin`);
  expect((await admin.get(path)).body).toMatchObject({ status: 'enabled' });
  const reader = await world.service.callerOf('shop', 'payments:read');
  expect((await reader.post('/webhook-endpoints', { url })).status).toBe(403);
  expect((await reader.delete(path)).status).toBe(403);
});

test('a subject has at most twenty', async () => {
  const many = await world.callerOf('many');
  for (let made = 0; made < 20; made += 1) await many.post('/webhook-endpoints', { url });
  expect(await many.post('/webhook-endpoints', { url })).toMatchObject({
    status: 422,
    body: { error: { code: 'TOO_MANY_WEBHOOK_ENDPOINTS' } },
  });
});

describe('refused is', () => {
  test.each([
    'http://shop.example/hook',
    'https://127.0.0.1/hook',
    'https://10.0.0.1/hook',
    'https://169.254.169.254/latest/meta-data',
    'https://[::1]/hook',
    'https://[::ffff:127.0.0.1]/hook',
    'https://2130706433/hook',
  ])('the URL %s', async (to) => {
    const { status, body } = await shop.post('/webhook-endpoints', { url: to });
    expect([status, (body as { error: { code: string } }).error.code]).toEqual([
      expect.toBeOneOf([400, 422]),
      expect.toBeOneOf(['URL_NOT_ALLOWED', 'INVALID_REQUEST']),
    ]);
    expect(JSON.stringify(body)).not.toContain(to);
  });

  test.each<[string, object, string]>([
    ['no URL', {}, 'body/url'],
    ['another scheme', { url: 'ftp://shop.example' }, 'body/url'],
    ['credentials', { url: 'https://user:password@shop.example' }, 'body/url'],
    ['a line break', { url: 'https://shop.example/a\r\nb' }, 'body/url'],
    ['an endless URL', { url: `https://shop.example/${'a'.repeat(3000)}` }, 'body/url'],
    ['a number', { url: 5 }, 'body/url'],
    ['no types', { url, eventTypes: [] }, 'body/eventTypes'],
    ['the same type twice', { url, eventTypes: ['payment.failed', 'payment.failed'] }, 'body/eventTypes'],
    ['a pattern that is none', { url, eventTypes: ['payment.failed', 'pay*'] }, 'body/eventTypes/1'],
    ['a kind that there is not', { url, eventTypes: ['payments.*'] }, 'body/eventTypes/0'],
    ['a type that there is not', { url, eventTypes: ['payment.paid'] }, 'body/eventTypes/0'],
    ['a kind alone', { url, eventTypes: ['payment'] }, 'body/eventTypes/0'],
    ['a type with SQL in it', { url, eventTypes: ["a%' OR 1=1"] }, 'body/eventTypes/0'],
    ['NUL in the description', { url, description: 'a\0b' }, 'body/description'],
    ['a secret of its own', { url, secret: 'x' }, 'body/secret'],
  ])('%s', async (_what, body, path) => {
    const answer = await shop.post('/webhook-endpoints', body);
    expect(answer.status).toBe(400);
    const { error } = answer.body as { error: { details: { fields: { path: string }[] } } };
    expect(new Set(error.details.fields.map((field) => field.path))).toContain(path);
  });

  test('a type that there is not is answered with those that there are', async () => {
    const answer = await shop.post('/webhook-endpoints', { url, eventTypes: ['payment.paid'] });
    const said = JSON.stringify(answer.body);
    for (const type of [
      '*',
      'payment.*',
      'payment.succeeded',
      'refund.failed',
      'invoice.overpaid',
      'subscription.past_due',
    ])
      expect(said).toContain(`'${type}'`);
  });

  test('all that is wrong is said at once', async () => {
    const answer = await shop.post('/webhook-endpoints', { url: 'x', eventTypes: ['?'], other: 1 });
    const { error } = answer.body as { error: { details: { fields: { path: string }[] } } };
    expect(error.details.fields.map(({ path }) => path).toSorted()).toEqual([
      'body/eventTypes/0',
      'body/other',
      'body/url',
    ]);
  });
});
