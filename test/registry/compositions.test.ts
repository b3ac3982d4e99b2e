import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';

const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let registry: RunningService;

beforeAll(async () => {
  namespace = await createNamespace('compositions');
  const { url: databaseUrl } = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl }));
  const shop = { service_name: 'shop', service_url: 'http://shop', capabilities: ['graphql'] };
  for (const instance_id of ['a', 'b']) await registry.call('POST', '/services/register', { ...shop, instance_id });
  await registry.call('POST', '/services/register', { service_name: 'rest', service_url: 'http://rest' });
});

afterAll(() => stack.disposeAsync());

const report = (service: string, body: object) => registry.call('POST', `/services/${service}/composition`, body);

interface Stored {
  readonly metadata: { readonly resourceVersion: string };
  readonly status?: { readonly conditions?: readonly Readonly<Record<string, string>>[] };
}

async function stored(instance: string): Promise<Stored> {
  return JSON.parse(await namespace.kubectl(['get', 'serviceregistrations', `shop.i.${instance}`, '--output=json']));
}

test('every instance of a service has how its schema stands, among its other conditions', async () => {
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'Static',
    message: 'x',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  await namespace.kubectl([
    'patch',
    'serviceregistrations',
    'shop.i.a',
    '--subresource=status',
    '--type=merge',
    `--patch=${JSON.stringify({ status: { phase: 'Registered', conditions: [ready] } })}`,
  ]);
  const held = { status: 'held', message: 'X: does not fit' };
  expect(await report('shop', held)).toMatchObject({
    status: 200,
    body: { status: 'received', message: "Composition of 'shop' received: held" },
  });
  const condition = { type: 'Composed', status: 'False', reason: 'Held', message: held.message };
  expect((await stored('a')).status?.conditions).toMatchObject([{ type: 'Ready' }, condition]);
  expect((await stored('b')).status?.conditions).toMatchObject([condition]);

  const { metadata } = await stored('b');
  await report('shop', held);
  expect((await stored('b')).metadata.resourceVersion).toBe(metadata.resourceVersion);

  await report('shop', { status: 'composed', message: 'Well' });
  expect((await stored('b')).status?.conditions).toMatchObject([
    { status: 'True', reason: 'InGraph', message: 'Well' },
  ]);
});

test.each([
  ['an unknown service', 'stranger', 404, { status: 'composed', message: 'x' }],
  ['one without GraphQL', 'rest', 404, { status: 'composed', message: 'x' }],
  ['what is no name', 'a%0Ab', 400, { status: 'composed', message: 'x' }],
  ['an unknown status', 'shop', 400, { status: 'fine', message: 'x' }],
  ['no message', 'shop', 400, { status: 'held' }],
  ['an empty message', 'shop', 400, { status: 'held', message: '' }],
  ['a line feed', 'shop', 400, { status: 'held', message: 'a\nb' }],
  ['a change of direction', 'shop', 400, { status: 'held', message: 'a\u202eb' }],
  ['a long message', 'shop', 400, { status: 'held', message: 'x'.repeat(1025) }],
  ['a long one that is not too long', 'shop', 200, { status: 'held', message: '😀'.repeat(1024) }],
])('%s', async (...[, service, status, body]) => {
  expect((await report(service, body)).status).toBe(status);
});
