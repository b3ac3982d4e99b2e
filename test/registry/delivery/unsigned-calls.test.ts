import { deliveryPolicyKind } from '@rollcall/crds/kinds.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { sign } from '@rollcall/platform/webhooks/signatures.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type DeliveryFixture, newJob, setStatus, startDelivery } from './fixture.ts';

const SECRET = 'k3y-and-long-enough';

let namespace: TestNamespace;
let database: TestDatabase;
/** Nobody has to say who they are, and nothing is allowed for that. */
let closed: DeliveryFixture;
let open: DeliveryFixture;

beforeAll(async () => {
  namespace = await createNamespace('unsigned');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  closed = await startDelivery({ ...options, webhookRules: { allowUnsigned: false } });
  open = await startDelivery(options);
});

afterAll(async () => {
  await open[Symbol.asyncDispose]();
  await closed[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const release = (service_name: string) => ({ service_name, version: '1.0.0', artifact_url: 'shop:1.0.0' });
const required = {
  status: 401,
  body: { error: 'Signature required', message: expect.stringContaining('ROLLCALL_WEBHOOK_ALLOW_UNSIGNED') },
};

/** What makes something run or be sent, of a service without a secret. */
const calls: readonly [path: string, body: object | undefined][] = [
  ['/webhooks/deploy', release('free')],
  ['/webhooks/rollback', { service_name: 'free', version: '1.0.0' }],
  ['/webhooks/config', { service_name: 'free', endpoints: {} }],
  ['/webhooks/config', { service_name: 'free', endpoints: {}, secret: SECRET }],
  ['/webhooks/config', { endpoints: {} }],
  ['/webhooks/notify', { service_name: 'free', channel: 'chat', message: 'hello' }],
  ['/jobs/steered/promote', undefined],
  ['/jobs/steered/promote', { job_id: 'steered', action: 'promote' }],
  ['/jobs/steered/abort', undefined],
];

test.each(calls)('%s with %j needs a proof', async (path, body) => {
  await open.jobs.create(newJob('steered', { serviceName: 'free' })).catch(() => undefined);
  await setStatus(open.jobs, 'steered', { phase: 'Paused' });
  const text = body === undefined ? '' : JSON.stringify(body);
  for (const given of [{}, { 'x-webhook-signature': sign('some-secret-or-other', text) }]) {
    expect(await closed.postRaw(path, text, given)).toMatchObject(required);
  }
  // A secret proves nothing where none is stored.
  expect(await closed.post(path, { ...body, webhook_secret: SECRET })).toMatchObject({ status: 401 });
});

test('a version may be announced, but not where it is deployed by that', async () => {
  expect(await closed.post('/webhooks/update', release('announced'))).toMatchObject({ status: 200 });
  const policies = resourceClient(open.connection, deliveryPolicyKind, namespace.name);
  await policies.create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryPolicy',
    metadata: { name: 'automatic' },
    spec: { serviceName: 'automatic', autoDeploy: true },
  } as Parameters<typeof policies.create>[0]);
  expect(await closed.post('/webhooks/update', release('automatic'))).toMatchObject(required);
  expect((await closed.post('/webhooks/check-updates', { service_name: 'automatic' })).status).toBe(404);
  expect(await open.post('/webhooks/update', release('automatic'))).toMatchObject({
    status: 200,
    body: { job_id: expect.stringMatching(/^deploy-automatic-/) },
  });
});

test('with a secret all is as ever, and that counts for notifications, too', async () => {
  const config = { service_name: 'secured', endpoints: { chat: 'http://127.0.0.1:9/hook' }, secret: SECRET };
  expect((await open.post('/webhooks/config', config)).status).toBe(200);
  for (const registry of [closed, open]) {
    const message = { service_name: 'secured', channel: 'chat', message: 'hello' };
    const text = JSON.stringify(message);
    expect(await registry.postRaw('/webhooks/notify', text)).toMatchObject({
      status: 401,
      body: { error: 'Invalid signature' },
    });
    const wrong = { 'x-webhook-signature': sign('another-secret-of-it', text) };
    expect((await registry.postRaw('/webhooks/notify', text, wrong)).status).toBe(401);
    const right = { 'x-webhook-signature': sign(SECRET, text) };
    expect((await registry.postRaw('/webhooks/notify', text, right)).status).toBe(200);
    expect((await registry.post('/webhooks/notify', { ...message, webhook_secret: SECRET })).status).toBe(200);
    expect((await registry.post('/webhooks/deploy', { ...release('secured'), webhook_secret: SECRET })).status).toBe(
      200,
    );
  }
});

test('what the registry has sent to a channel is no call, though it is signed with the same secret', async () => {
  const sent = JSON.stringify({ service_name: 'secured', channel: 'chat', message: 'again', id: 'f'.repeat(8) });
  const answer = await open.postRaw('/webhooks/notify', sent, { 'x-webhook-signature': sign(SECRET, sent) });
  expect(answer).toMatchObject({
    status: 400,
    body: { error: 'Invalid request', message: expect.stringContaining('id') },
  });
});
