import { randomUUID } from 'node:crypto';
import { callParts, sign, signStandard } from '@rollcall/platform/webhooks/signatures.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type Answer, type DeliveryFixture, setStatus, startDelivery } from './fixture.ts';

const SECRET = 'k3y-and-long-enough';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let replica: DeliveryFixture;
let second = 1_790_000_000;

beforeAll(async () => {
  namespace = await createNamespace('replay');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  delivery = await startDelivery(options);
  replica = await startDelivery(options);
});

afterAll(async () => {
  await replica[Symbol.asyncDispose]();
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** Moves the clocks of both replicas. */
function setSecond(at: number): void {
  for (const each of [delivery, replica]) each.setTime(new Date(at * 1000 + 300));
}

/** Every test has a time and a service of its own. */
async function newService(): Promise<string> {
  second += 10_000;
  setSecond(second);
  const service_name = `svc-${randomUUID()}`;
  const answer = await delivery.post('/webhooks/config', { service_name, endpoints: {}, secret: SECRET });
  expect(answer.status).toBe(200);
  return service_name;
}

interface Call {
  readonly id?: string;
  readonly timestamp?: number;
  readonly path?: string;
  /** Where it is not the path that it goes to. */
  readonly signedPath?: string;
  readonly body: string;
  readonly secret?: string;
  readonly via?: DeliveryFixture;
}

/** As a sender with a library of Standard Webhooks makes it. */
function standard({
  id = `msg_${randomUUID()}`,
  timestamp = second,
  path = '/webhooks/deploy',
  ...call
}: Call): Promise<Answer> {
  const { body, secret = SECRET, via = delivery } = call;
  return via.postRaw(path, body, {
    'webhook-id': id,
    'webhook-timestamp': `${timestamp}`,
    'webhook-signature': signStandard(secret, { id, timestamp: `${timestamp}`, body }),
  });
}

/** As a sender with our own headers makes it. */
function stamped({
  timestamp = second,
  path = '/webhooks/deploy',
  signedPath = path,
  body,
  secret = SECRET,
  via = delivery,
}: Call): Promise<Answer> {
  return via.postRaw(path, body, {
    'x-webhook-timestamp': `${timestamp}`,
    'x-webhook-signature': sign(secret, callParts({ timestamp: `${timestamp}`, path: `/api/v1${signedPath}`, body })),
  });
}

const deployment = (service_name: string, version = '1.0.0') =>
  JSON.stringify({ service_name, version, artifact_url: `shop:${version}` });

async function jobsOf(service: string): Promise<string[]> {
  const { items } = JSON.parse(await namespace.kubectl(['get', 'deliveryjobs', '-o', 'json']));
  return items
    .filter((item: { spec: { serviceName: string } }) => item.spec.serviceName === service)
    .map((item: { metadata: { name: string } }) => item.metadata.name);
}

const pausedSince = (at: number) => ({ phase: 'Paused', stageStartedAt: new Date(at * 1000).toISOString() }) as const;

const refused = { status: 401, body: { error: 'Invalid signature', message: expect.any(String) } };

test.each([
  ['Standard Webhooks', standard],
  ['X-Webhook-Timestamp', stamped],
] as const)('%s: a call is carried out once, at whatever replica it is made again', async (_name, call) => {
  const service = await newService();
  const once = { id: 'msg_1', body: deployment(service), timestamp: second };
  expect(await call(once)).toMatchObject({ status: 200, body: { job_id: `deploy-${service}-1.0.0-${second}` } });
  for (const later of [1, 100, 290]) {
    setSecond(second + later);
    for (const via of [delivery, replica]) expect(await call({ ...once, via })).toMatchObject(refused);
  }
  expect(await jobsOf(service)).toHaveLength(1);
  // A new call of the same content is another one.
  second += 290;
  expect((await call({ ...once, id: 'msg_2', timestamp: second })).status).toBe(200);
  expect(await jobsOf(service)).toHaveLength(2);
});

test.each([
  ['Standard Webhooks', standard],
  ['X-Webhook-Timestamp', stamped],
] as const)('%s: the same call again within the second is one job, also many at once', async (_name, call) => {
  const service = await newService();
  const once = { id: 'msg_1', body: deployment(service), timestamp: second };
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) => call({ ...once, via: i % 2 === 0 ? delivery : replica })),
  );
  answers.push(await call(once));
  expect(new Set(answers.map(({ status, body }) => `${status} ${String(body['job_id'])}`))).toEqual(
    new Set([`200 deploy-${service}-1.0.0-${second}`]),
  );
  expect(await jobsOf(service)).toHaveLength(1);
});

test('an id that was carried out is not carried out again when it is sent hours later with a new timestamp', async () => {
  const service = await newService();
  const call = { id: 'msg_1', body: deployment(service) };
  expect((await standard(call)).status).toBe(200);
  for (const hours of [1, 10, 71]) {
    const timestamp = second + hours * 3600;
    setSecond(timestamp);
    // What is due to be forgotten is forgotten by any call.
    const other = deployment(service, `2.0.${hours}`);
    expect((await standard({ body: other, timestamp })).status).toBe(200);
    expect(await standard({ ...call, timestamp })).toMatchObject(refused);
  }
  second += 71 * 3600;
  expect(await jobsOf(service)).toHaveLength(4);
});

test.each([-301, 301])('a timestamp %i s off the clock is refused, and nothing is done', async (offset) => {
  const service = await newService();
  const body = deployment(service);
  expect(await standard({ body, timestamp: second + offset })).toMatchObject(refused);
  expect(await stamped({ body, timestamp: second + offset })).toMatchObject(refused);
  expect(await jobsOf(service)).toEqual([]);
  for (const within of [-299, 300]) {
    expect((await standard({ body, timestamp: second + within })).status).toBe(200);
  }
});

test('a wrong secret, a changed body, another id or a changed time is refused', async () => {
  const service = await newService();
  const body = deployment(service);
  const id = 'msg_1';
  const timestamp = `${second}`;
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signStandard(SECRET, { id, timestamp, body }),
  };
  for (const [sent, changed] of [
    [`${body} `, headers],
    [body, { ...headers, 'webhook-id': 'msg_2' }],
    [body, { ...headers, 'webhook-timestamp': `${second + 1}` }],
    [body, { ...headers, 'webhook-signature': headers['webhook-signature'].replace('v1', 'v2') }],
  ] as const) {
    expect(await delivery.postRaw('/webhooks/deploy', sent, changed)).toMatchObject(refused);
  }
  expect(await standard({ body, secret: 'other-and-long-enough' })).toMatchObject(refused);
  expect(await stamped({ body, secret: 'other-and-long-enough' })).toMatchObject(refused);
  expect(await jobsOf(service)).toEqual([]);
  // None of that has used the id up.
  expect((await delivery.postRaw('/webhooks/deploy', body, headers)).status).toBe(200);
});

test('one id is one call: not another body, nor to do something else', async () => {
  const service = await newService();
  const id = 'msg_1';
  expect((await standard({ id, body: deployment(service) })).status).toBe(200);
  expect(await standard({ id, body: deployment(service, '1.0.1') })).toMatchObject(refused);
  expect(await standard({ id, body: deployment(service), path: '/webhooks/rollback' })).toMatchObject(refused);
  expect(await jobsOf(service)).toHaveLength(1);
  // Another service's sender knows nothing of it.
  const other = `other-${service}`;
  await delivery.post('/webhooks/config', { service_name: other, endpoints: {}, secret: SECRET });
  expect((await standard({ id, body: deployment(other) })).status).toBe(200);
});

test('a call that was refused for its content may be made again', async () => {
  const service = await newService();
  const id = 'msg_1';
  const rollback = {
    id,
    path: '/webhooks/rollback',
    body: JSON.stringify({ service_name: service, version: '1.0.0' }),
  };
  expect((await standard(rollback)).status).toBe(404);
  await delivery.post('/webhooks/update', { ...JSON.parse(deployment(service)), webhook_secret: SECRET });
  setSecond(second + 5);
  expect(await standard(rollback)).toMatchObject({
    status: 200,
    body: { job_id: `rollback-${service}-1.0.0-${second + 5}` },
  });
});

test('a call whose end nobody heard of is the same job when it is made again', async () => {
  const service = await newService();
  const call = { id: 'msg_1', body: deployment(service), timestamp: second };
  expect((await standard(call)).status).toBe(200);
  // As a replica leaves it that dies before the call is known to be carried out.
  await delivery.pool.query('UPDATE webhook_calls SET done = false WHERE scope = $1', [service]);
  setSecond(second + 3);
  const again = await standard({ ...call, timestamp: second + 3, via: replica });
  expect(again).toMatchObject({ status: 200, body: { job_id: `deploy-${service}-1.0.0-${second}` } });
  expect(await jobsOf(service)).toHaveLength(1);
  setSecond(second + 6);
  expect(await standard({ ...call, timestamp: second + 6 })).toMatchObject(refused);
});

test.each([
  ['with its prefix', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
  ['without', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
])('a key of Standard Webhooks may be configured %s', async (_how, configured, used) => {
  second += 10_000;
  setSecond(second);
  const service = `svc-${randomUUID()}`;
  await delivery.post('/webhooks/config', { service_name: service, endpoints: {}, secret: configured });
  const answer = await standard({ body: deployment(service), secret: used });
  expect(answer.status).toBe(200);
});

test('while secrets are rotated, several signatures may be sent', async () => {
  const service = await newService();
  const body = deployment(service);
  const plain = { 'x-webhook-signature': `${sign('old-and-long-enough', body)} ${sign(SECRET, body)}` };
  expect((await delivery.postRaw('/webhooks/deploy', body, plain)).status).toBe(200);
  const message = { id: 'msg_1', timestamp: `${second}`, body };
  const answer = await delivery.postRaw('/webhooks/deploy', body, {
    'webhook-id': message.id,
    'webhook-timestamp': message.timestamp,
    'webhook-signature': `v1a,abc ${signStandard('old-and-long-enough', message)} ${signStandard(SECRET, message)}`,
  });
  expect(answer.status).toBe(200);
});

test('configuration, promotion and abortion are good once too', async () => {
  const service = await newService();
  const { job_id } = (await standard({ body: deployment(service) })).body;
  await setStatus(delivery.jobs, String(job_id), { phase: 'Paused' });
  const calls = [
    { path: '/webhooks/config', body: JSON.stringify({ service_name: service, endpoints: { a: 'http://a/' } }) },
    { path: `/jobs/${String(job_id)}/promote`, body: JSON.stringify({ job_id, action: 'promote' }) },
    { path: `/jobs/${String(job_id)}/abort`, body: JSON.stringify({ job_id, action: 'abort' }) },
  ];
  for (const [i, call] of calls.entries()) {
    const once = { ...call, id: `msg_${i}`, timestamp: second };
    expect((await standard(once)).status).toBe(200);
    setSecond(second + 2);
    expect(await standard(once)).toMatchObject(refused);
    setSecond(second);
  }
});

test('a promotion whose end nobody heard of does not end the next pause when it is made again', async () => {
  const service = await newService();
  const { job_id } = (await standard({ body: deployment(service) })).body;
  const id = String(job_id);
  await setStatus(delivery.jobs, id, { ...pausedSince(second - 60), step: 0 });
  const call = { id: 'msg_1', path: `/jobs/${id}/promote`, body: JSON.stringify({ job_id, action: 'promote' }) };
  expect((await standard(call)).status).toBe(200);
  expect((await delivery.jobs.get(id)).spec.promote).toBe(true);
  await delivery.pool.query('UPDATE webhook_calls SET done = false WHERE scope = $1', [service]);
  // As the operator leaves it that acted on it and is in the next pause.
  await delivery.jobs.patch(id, { spec: { promote: false } });
  await setStatus(delivery.jobs, id, { ...pausedSince(second + 10), step: 1 });
  setSecond(second + 20);
  expect((await standard({ ...call, timestamp: second + 20 })).status).toBe(200);
  expect((await delivery.jobs.get(id)).spec.promote).toBe(false);
  // A new one does, also where the operator's clock is ahead.
  await setStatus(delivery.jobs, id, { ...pausedSince(second + 25), step: 1 });
  expect((await standard({ ...call, id: 'msg_2', timestamp: second + 20 })).status).toBe(200);
  expect((await delivery.jobs.get(id)).spec.promote).toBe(true);
});

test('what was signed for something else neither promotes nor aborts', async () => {
  const service = await newService();
  const { job_id } = (await standard({ body: deployment(service) })).body;
  await setStatus(delivery.jobs, String(job_id), { phase: 'Paused' });
  const message = JSON.stringify({ service_name: service, channel: 'chat', message: 'hello', severity: 'info' });
  for (const action of ['promote', 'abort']) {
    const path = `/jobs/${String(job_id)}/${action}`;
    for (const body of ['', '{}', message, JSON.stringify({ job_id }), JSON.stringify({ action })]) {
      const plain = { 'x-webhook-signature': sign(SECRET, body) };
      expect(await delivery.postRaw(path, body, plain)).toMatchObject(refused);
      expect(await stamped({ path, body, signedPath: '/webhooks/notify' })).toMatchObject(refused);
      expect(await standard({ path, body })).toMatchObject(refused);
    }
  }
  expect((await delivery.jobs.get(String(job_id))).spec).toMatchObject({ promote: false, abort: false });
});

test.each([
  ['/webhooks/update', '/webhooks/deploy'],
  ['/webhooks/deploy', '/webhooks/update'],
])('what was signed for %s is no good for %s, though the bodies are alike', async (signedPath, path) => {
  const service = await newService();
  const body = deployment(service);
  const refusal = await stamped({ path, body, signedPath });
  expect(refusal).toMatchObject(refused);
  expect(refusal.body['message']).toContain(`/api/v1${path}`);
  // A Standard Webhooks id is good for the path that it first came for.
  expect((await standard({ id: 'msg_1', path: signedPath, body })).status).toBe(200);
  expect(await standard({ id: 'msg_1', path, body, via: replica })).toMatchObject(refused);
  // Signed for both, in the same second, they are two calls.
  expect((await stamped({ path: signedPath, body })).status).toBe(200);
  expect((await stamped({ path, body })).status).toBe(200);
});

test('a signature that covers the path proves a call without a body', async () => {
  const service = await newService();
  const { job_id } = (await standard({ body: deployment(service) })).body;
  await setStatus(delivery.jobs, String(job_id), { phase: 'Paused' });
  expect((await stamped({ path: `/jobs/${String(job_id)}/abort`, body: '' })).status).toBe(200);
});

test('a service without a secret is not asked for anything', async () => {
  second += 10_000;
  setSecond(second);
  const body = deployment(`free-${randomUUID()}`);
  const answer = await standard({ body, timestamp: 1, secret: 'any-and-long-enough' });
  expect(answer.status).toBe(200);
});

test('what is too old to be made again is forgotten', async () => {
  const service = await newService();
  expect((await standard({ body: deployment(service) })).status).toBe(200);
  const count = async () => {
    const { rows } = await delivery.pool.query('SELECT id FROM webhook_calls WHERE scope = $1', [service]);
    return rows.length;
  };
  expect(await count()).toBe(1);
  second += 3 * 86_400;
  const other = await newService();
  expect((await standard({ body: deployment(other) })).status).toBe(200);
  expect(await count()).toBe(0);
});
