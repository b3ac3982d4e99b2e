import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';

const run = promisify(execFile);
const DIRECTORY = join(REPOSITORY, '.local');
const ENDPOINTS = join(DIRECTORY, 'endpoints.json');
/** The first run builds Kubernetes; where that was done before, seconds. */
const START_TIMEOUT_MS = 900_000;

let start: ChildProcess;
let output = '';
let api: string;
let gateway: string;
let gatewayGrpc: string;
let kubeconfig: string;

beforeAll(async () => {
  await rm(ENDPOINTS, { force: true });
  start = spawn('npm', ['start'], { cwd: REPOSITORY, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [start.stdout, start.stderr]) stream?.on('data', (chunk) => (output += String(chunk)));
  await waitUntil('npm start is ready', async () => ended() || existsSync(ENDPOINTS), { timeoutMs: START_TIMEOUT_MS });
  const endpoints = JSON.parse(await readFile(ENDPOINTS, 'utf8')) as {
    registry: string;
    gateway: string;
    gatewayGrpc: string;
    kubeconfig: string;
  };
  ({ gateway, gatewayGrpc } = endpoints);
  api = `${endpoints.registry}/api/v1`;
  kubeconfig = endpoints.kubeconfig;
}, START_TIMEOUT_MS);

afterAll(() => {
  if (start.exitCode === null && start.pid !== undefined) process.kill(-start.pid, 'SIGKILL');
});

function ended(): boolean {
  if (start.exitCode !== null) throw new Error(`npm start ended:\n${output}`);
  return false;
}

async function kubectl(...args: string[]): Promise<string> {
  return (await run(join(DIRECTORY, 'bin', 'kubectl'), ['--kubeconfig', kubeconfig, ...args])).stdout;
}

async function call(method: string, path: string, body?: object): Promise<[number, unknown]> {
  const json =
    body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(api + path, { method, ...json });
  const text = await response.text();
  return [response.status, response.headers.get('content-type')?.includes('json') === true ? JSON.parse(text) : text];
}

const CATALOG = 'rollcall.dev/service=catalog';

test('kubectl shows the samples with instance, URL, phase, health, since when, version and age', async () => {
  const table = await kubectl('get', 'serviceregistrations');
  expect(table.split('\n')[0]).toMatch(/SERVICE +INSTANCE +URL +PHASE +HEALTH +CHECK +SINCE +VERSION +AGE/);
  for (const name of ['catalog', 'orders', 'mailer', 'auth', 'lms']) {
    await expect
      .poll(() => kubectl('get', 'sreg', '-l', `rollcall.dev/service=${name}`), { timeout: 15_000 })
      .toMatch(/http:\/\/127\.0\.0\.1:\d+ +Registered +healthy +\d+s? +\S+ +\d+s/);
  }
  for (const name of ['communication', 'payment']) {
    await expect
      .poll(() => kubectl('get', 'sreg', '-l', `rollcall.dev/service=${name}`), { timeout: 15_000 })
      .toMatch(/http:\/\/127\.0\.0\.1:\d+ +Registered .* \d+\.\d+\.\d+ +\d+s/);
  }
  expect(await kubectl('describe', 'sreg', '-l', CATALOG)).toMatch(
    /Conditions:[\s\S]*Heartbeating[\s\S]*Events:[\s\S]*Registered/,
  );
  expect(await kubectl('get', 'nodes')).toContain('Ready');
});

test('the gateway issues a token for the client that is printed, and passes requests on to the samples', async () => {
  const [, credentials] = /curl -s -u (demo:\S+)/.exec(output) ?? [];
  const basic = Buffer.from(credentials ?? '').toString('base64');
  const answer = await fetch(`${gateway}/api/v1/auth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const headers = { authorization: `Bearer ${token}` };
  const courses = await fetch(`${gateway}/api/v1/lms/courses`, { headers });
  expect(courses.headers.get('x-ratelimit-limit')).toBe('1000');
  expect(await courses.json()).toEqual({ courses: [expect.any(Object)], asked_by: 'demo' });
  expect(await (await fetch(`${gateway}/api/v1/auth/users`, { headers })).json()).toMatchObject({ asked_by: 'demo' });
  expect((await fetch(`${gateway}/api/v1/lms/courses`)).status).toBe(401);
  expect(await (await fetch(`${gateway}/api/health`)).json()).toMatchObject({ status: 'healthy' });
});

test('endpoints.json has the client by which the gateway can be tried', async () => {
  const { demoClient } = JSON.parse(await readFile(ENDPOINTS, 'utf8'));
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: demoClient.id,
    client_secret: demoClient.secret,
  });
  const answer = await fetch(`${gateway}/api/v1/auth/token`, { method: 'POST', body });
  expect(await answer.json()).toMatchObject({ token_type: 'Bearer', scope: '*' });
});

test('endpoints.json says where the gateway accepts gRPC calls', async () => {
  const session = connect(`http://${gatewayGrpc}`);
  const [head] = await once(session.request({ ':path': '/' }), 'response');
  session.destroy();
  expect(head).toMatchObject({ ':status': 405, allow: 'POST' });
});

test('endpoints.json says where to read the mails that its mail server has', async () => {
  const { mail } = JSON.parse(await readFile(ENDPOINTS, 'utf8'));
  expect(output).toContain(`read at ${mail}/api/v1/messages`);
  const answer = await fetch(`${mail}/api/v1/messages`);
  expect(await answer.json()).toMatchObject({ messages: expect.any(Array) });
});

test('endpoints.json says where each process has its metrics', async () => {
  const { metrics } = JSON.parse(await readFile(ENDPOINTS, 'utf8')) as { metrics: Record<string, string> };
  expect(Object.keys(metrics).toSorted()).toEqual([
    'communication',
    'federation',
    'gateway',
    'operator',
    'payment',
    'registry',
  ]);
  for (const [name, url] of Object.entries(metrics))
    expect(await (await fetch(url)).text()).toContain(`process="${name}"`);
});

interface ApiCall {
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A call of the demo client, through the gateway. @param path below `/api/v1`. */
async function throughGateway(path: string, { body, headers = {} }: ApiCall = {}): Promise<Record<string, unknown>> {
  const answer = await fetch(`${gateway}/api/v1${path}`, {
    headers: { authorization: `Bearer ${await tokenOfDemo()}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  return (await answer.json()) as Record<string, unknown>;
}

let token: string | undefined;

/** Asked for once: the gateway bounds how often. */
async function tokenOfDemo(): Promise<string> {
  if (token !== undefined) return token;
  const { demoClient } = JSON.parse(await readFile(ENDPOINTS, 'utf8'));
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: demoClient.id,
    client_secret: demoClient.secret,
  });
  const answer = await fetch(`${gateway}/api/v1/auth/token`, { method: 'POST', body });
  token = ((await answer.json()) as { access_token: string }).access_token;
  return token;
}

test('communication and payment are registered, and describe themselves through the gateway', async () => {
  for (const name of ['communication', 'payment']) {
    expect(await kubectl('get', 'sreg', '-l', `rollcall.dev/service=${name}`)).toContain('Registered');
    expect(await throughGateway(`/${name}/health`)).toMatchObject({ status: 'healthy', database: 'connected' });
    expect(await throughGateway(`/${name}/openapi.json`)).toMatchObject({ openapi: '3.1.0' });
    expect(await throughGateway(`/${name}/graphql`, { body: { query: '{ _service { sdl } }' } })).toMatchObject({
      data: { _service: { sdl: expect.stringContaining('type Query') } },
    });
  }
});

test('federation answers by one graph of communication and payment', async () => {
  const { gateway } = JSON.parse(await readFile(ENDPOINTS, 'utf8'));
  const query = async (query: string) => {
    const answer = await fetch(`${gateway}/api/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await tokenOfDemo()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    return answer.json();
  };
  await expect
    .poll(() => query('{ __type(name: "Query") { fields { name } } }'), { timeout: 30_000 })
    .toMatchObject({
      data: { __type: { fields: expect.arrayContaining([{ name: 'payments' }, { name: 'messages' }]) } },
    });
  await expect
    .poll(() => query('{ user(id: "u-1") { name payments { id } } }'), { timeout: 30_000 })
    .toEqual({ data: { user: { name: 'Ada', payments: [] } } });
  await expect
    .poll(() => kubectl('describe', 'sreg', '-l', 'rollcall.dev/service=payment'), { timeout: 30_000 })
    .toMatch(
      /newest schema is in the graph\s+Observed Generation: +1\s+Reason: +InGraph\s+Status: +True\s+Type: +Composed/,
    );
});

test('a mail of a template reaches the mail server', async () => {
  const { mail } = JSON.parse(await readFile(ENDPOINTS, 'utf8'));
  const variables = { company: 'Shop', url: 'https://shop.example.com' };
  const sent = await throughGateway('/communication/emails', {
    body: { to: 'ada@example.com', template: 'welcome', variables },
    headers: { prefer: 'wait=20' },
  });
  expect(sent).toMatchObject({ status: 'sent', provider: 'mailpit' });
  expect(await throughGateway(`/communication/messages/${String(sent['id'])}`)).toMatchObject({
    attempts: [{ provider: 'mailpit', status: 'accepted' }],
  });
  expect(await (await fetch(`${mail}/api/v1/search?query=to:ada@example.com`)).json()).toMatchObject({
    messages: [{ Subject: 'Welcome to Shop' }],
  });
});

test('what is made says where it is, by its path at the gateway', async () => {
  const headers = { authorization: `Bearer ${await tokenOfDemo()}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ to: '0821234567', message: 'Hello' });
  const made = await fetch(`${gateway}/api/v1/communication/sms`, { method: 'POST', headers, body });
  const { id } = (await made.json()) as { id: string };
  const found = await fetch(new URL(String(made.headers.get('location')), made.url), { headers });
  expect(await found.json()).toMatchObject({ id });
});

test('an SMS and a push message reach simulators of their providers, which report back', async () => {
  const headers = { prefer: 'wait=20' };
  const sms = await throughGateway('/communication/sms', { body: { to: '0821234567', message: 'Hello' }, headers });
  expect(sms).toMatchObject({ to: '+27821234567', segments: 1 });
  await expect
    .poll(() => throughGateway(`/communication/messages/${String(sms['id'])}`), { timeout: 30_000 })
    .toMatchObject({ status: 'delivered' });
  const body = { deviceToken: 'a-device-that-the-simulator-of-fcm-knows-of', title: 'Hello' };
  expect(await throughGateway('/communication/push', { body, headers })).toMatchObject({ status: 'sent' });
});

test('a payment that is paid on its page succeeds, and a refund takes it back', async () => {
  const order = { amount: 14_950, currency: 'ZAR', customerEmail: 'ada@example.com', itemName: 'Tea' };
  const made = await throughGateway('/payment/payments', { body: { ...order, provider: 'yoco' } });
  const [id, page] = [String(made['id']), String(made['paymentUrl'])];
  await fetch(page, { method: 'POST', body: new URLSearchParams({ outcome: 'pay' }), redirect: 'manual' });
  await expect
    .poll(() => throughGateway(`/payment/payments/${id}`), { timeout: 30_000 })
    .toMatchObject({ status: 'succeeded' });
  expect(await throughGateway('/payment/transactions?status=succeeded')).toMatchObject({ payments: [{ id }] });
  await throughGateway(`/payment/payments/${id}/refunds`, { body: { reason: 'returned' } });
  await expect
    .poll(() => throughGateway(`/payment/payments/${id}`), { timeout: 30_000 })
    .toMatchObject({ status: 'refunded', amountRefunded: 14_950 });
});

async function cli(...args: string[]): Promise<string> {
  return (await run(process.execPath, ['cli/src/main.ts', ...args], { cwd: REPOSITORY })).stdout;
}

test('the command line shows messages and payments, and gives money back', async () => {
  expect(await cli('messages', '--to', 'ada@example.com')).toMatch(/email +ada@example\.com +sent +mailpit/);
  const [sms] = JSON.parse(await cli('messages', '--channel', 'sms', '-o', 'json')).messages;
  expect(await cli('message', sms.id)).toMatch(/Status: +delivered[\s\S]*ATTEMPT/);
  expect(await cli('payments', '--status', 'refunded')).toMatch(/ZAR 149\.50 +refunded +yoco +ada@example\.com/);
  const [{ id }] = JSON.parse(await cli('payments', '-o', 'json')).payments;
  expect(await cli('payment', id)).toMatch(/Refunded: +ZAR 149\.50/);
  await expect(cli('refund', id, '--reason', 'again')).rejects.toMatchObject({ code: 1 });
  await expect(cli('message', '0869137e-ee3f-42c9-92e8-768c4286b260')).rejects.toThrow('There is none');
});

test('endpoints.json says where providers are simulated, and they say how to be their client', async () => {
  const { simulators } = JSON.parse(await readFile(ENDPOINTS, 'utf8')) as { simulators: Record<string, string> };
  expect(Object.keys(simulators)).toEqual([
    'twilio',
    'payfast',
    'bulksms',
    'clickatell',
    'sendgrid',
    'yoco',
    'fcm',
    'stripe',
  ]);
  const credentials = Object.entries(simulators).map(async ([name, url]) => {
    expect(output).toContain(`${name} ${url}`);
    return await (await fetch(`${url}/_control/credentials`)).text();
  });
  const [, , bulksms, clickatell, sendgrid, yoco, , stripe] = await Promise.all(credentials);
  const told = `${gateway}/api/v1`;
  expect(bulksms).toContain(`${told}/communication/notifications/bulksms?token=`);
  expect(clickatell).toContain(`${told}/communication/notifications/clickatell?token=`);
  expect(sendgrid).toContain(`${told}/communication/notifications/sendgrid`);
  expect(yoco).toContain(`${told}/payment/notifications/yoco`);
  expect(stripe).toContain(`${told}/payment/notifications/stripe`);
});

test('simulators that end are started again, the same to their clients', { timeout: 120_000 }, async () => {
  const { simulators } = JSON.parse(await readFile(ENDPOINTS, 'utf8'));
  const asked = async () => await (await fetch(`${simulators.fcm}/_control/credentials`)).text();
  const before = await asked();
  process.kill(await processOf('simulators/src/main.ts'), 'SIGKILL');
  await expect.poll(() => output, { timeout: 60_000 }).toContain('The process of the simulators works again');
  expect(await asked()).toBe(before);
  expect(existsSync(ENDPOINTS)).toBe(true);
});

function legacyAt(url: string): string {
  return JSON.stringify({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name: 'legacy' },
    spec: { serviceName: 'legacy', url },
  });
}

async function apply(manifest: string): Promise<void> {
  const script = 'printf %s "$1" | "$2" --kubeconfig "$3" apply -f -';
  await run('sh', ['-c', script, 'sh', manifest, join(DIRECTORY, 'bin', 'kubectl'), kubeconfig]);
}

test('a manifest becomes discoverable, a wrong one is refused with a clear message', async () => {
  await expect(apply(legacyAt('javascript:alert(1)'))).rejects.toThrow(/url must be an absolute http or https URL/);
  await apply(legacyAt('http://legacy:8080'));
  await expect.poll(async () => (await call('GET', '/services/legacy'))[0]).toBe(200);
});

test('every documented path answers as documented', async () => {
  const service = { service_name: 'tour', service_url: 'http://127.0.0.1:9', capabilities: ['rest'] };
  const release = {
    service_name: 'tour',
    version: '1.1.0',
    artifact_url: 'registry.local/tour:1.1.0',
    artifact_type: 'image',
  };
  const job = {
    status: 'accepted',
    job_id: expect.stringMatching(/^(deploy|rollback)-tour-1\.1\.0-\d+$/),
    service_name: 'tour',
    version: '1.1.0',
  };
  const expectations: [string, string, object | undefined, number, unknown][] = [
    ['GET', '/health', undefined, 200, { status: 'healthy', store: 'connected' }],
    ['POST', '/services/register', service, 200, { ...service, ttl: 60 }],
    ['GET', '/services', undefined, 200, { total: expect.any(Number), services: expect.any(Array) }],
    ['GET', '/services/tour', undefined, 200, service],
    ['POST', '/services/tour/heartbeat', undefined, 200, { service_name: 'tour', ttl: 60 }],
    ['GET', '/updates/history/tour', undefined, 200, { service_name: 'tour', history: [], total: 0 }],
    ['GET', '/updates/history', undefined, 200, { history: expect.any(Array), total: expect.any(Number) }],
    [
      'GET',
      '/updates/statistics',
      undefined,
      200,
      { total_updates: expect.any(Number), services_updated: expect.any(Array) },
    ],
    ['GET', '/updates/history/tour/export/json', undefined, 200, { history: [] }],
    ['POST', '/webhooks/update', release, 200, { status: 'accepted', service_name: 'tour', version: '1.1.0' }],
    [
      'POST',
      '/webhooks/check-updates',
      { service_name: 'tour' },
      200,
      { status: 'checked', latest_version: '1.1.0', update_available: true },
    ],
    [
      'POST',
      '/webhooks/health',
      { service_name: 'tour', status: 'healthy', details: { version: '1.0.0' } },
      200,
      { status: 'received' },
    ],
    ['POST', '/webhooks/lifecycle', { service_name: 'tour', event: 'started' }, 200, { status: 'received' }],
    ['POST', '/webhooks/deploy', { ...release, strategy: 'canary' }, 200, job],
    ['POST', '/webhooks/rollback', { service_name: 'tour', version: '1.1.0' }, 200, job],
    [
      'POST',
      '/webhooks/config',
      { service_name: 'tour', endpoints: { chat: 'http://127.0.0.1:9/hook' } },
      200,
      { status: 'configured' },
    ],
    [
      'GET',
      '/webhooks/config?service_name=tour',
      undefined,
      200,
      { service_name: 'tour', endpoints: { chat: 'http://127.0.0.1:9/hook' } },
    ],
    [
      'POST',
      '/webhooks/notify',
      { service_name: 'tour', channel: 'chat', message: 'hello', severity: 'info' },
      200,
      { status: 'sent' },
    ],
    ['DELETE', '/services/tour', undefined, 200, { service_name: 'tour' }],
  ];
  for (const [method, path, body, status, shape] of expectations) {
    const [code, answer] = await call(method, path, body);
    expect([method, path, code, answer]).toEqual([method, path, status, expect.objectContaining(shape as object)]);
  }
  expect(await call('GET', '/updates/history/tour/export/csv')).toEqual([
    200,
    expect.stringMatching(
      /^Service Name,Old Version,New Version,Timestamp,Status,Duration \(seconds\),Artifact URL,Checksum\r\n/,
    ),
  ]);
  // No Deployment is labelled with this service.
  await expect
    .poll(() => kubectl('get', 'deliveryjobs'), { timeout: 60_000, interval: 200 })
    .toMatch(/deploy-tour-1\.1\.0-\d+ .*Failed/);
});

test('a program that stops sending heartbeats is gone 60 s after its last one, its object Expired', async () => {
  const pid = Number(/catalog \S+ \(process (\d+)\)/.exec(output)?.[1]);
  process.kill(pid, 'SIGKILL');
  const [, record] = await call('GET', '/services/catalog');
  const lastBeatAt = Date.parse((record as { last_heartbeat: string }).last_heartbeat);
  await expect
    .poll(async () => (await call('GET', '/services/catalog'))[0], { timeout: 70_000, interval: 20 })
    .toBe(404);
  const goneAfterMs = Date.now() - lastBeatAt;
  expect(goneAfterMs).toBeGreaterThan(59_900);
  expect(goneAfterMs).toBeLessThan(62_000);
  expect(await kubectl('get', 'sreg', '-l', CATALOG)).toContain('Expired');
  for (const name of ['communication', 'payment']) {
    await expect
      .poll(() => kubectl('get', 'sreg', '-l', `rollcall.dev/service=${name}`), { timeout: 15_000 })
      .toMatch(/http:\/\/127\.0\.0\.1:\d+ +Registered .* \d+\.\d+\.\d+ +\d+s/);
  }
  expect(await kubectl('describe', 'sreg', '-l', CATALOG)).toMatch(/Warning +Expired/);
});

/** The process of this run whose command line holds the script. */
async function processOf(script: string): Promise<number> {
  const { stdout } = await run('ps', ['-eo', 'pid,ppid,args']);
  const processes = stdout.split('\n').map((line) => {
    const [pid = '', ppid = '', ...args] = line.trim().split(/\s+/);
    return { pid: Number(pid), ppid: Number(ppid), args: args.join(' ') };
  });
  const ours = new Set([start.pid]);
  // Parents may come after their children in the list: as often as there can be generations.
  for (let generation = 0; generation < 6; generation += 1) {
    for (const { pid, ppid } of processes) if (ours.has(ppid)) ours.add(pid);
  }
  const found = processes.find(({ pid, args }) => ours.has(pid) && args.includes(script));
  if (found === undefined) throw new Error(`npm start runs no ${script}:\n${stdout}`);
  return found.pid;
}

test.each([
  ['operator', 'operator/src/main.ts'],
  ['registry', 'services/registry/src/main.ts'],
])('the %s is started again when it is killed, and does its work again', { timeout: 180_000 }, async (name, script) => {
  const pid = await processOf(script);
  process.kill(pid, 'SIGKILL');
  await expect
    .poll(() => output, { timeout: 120_000 })
    .toMatch(new RegExp(`The ${name} ended by SIGKILL: it is started`));
  await expect.poll(() => output, { timeout: 120_000 }).toContain(`The ${name} works again`);
  expect(await processOf(script)).not.toBe(pid);
  expect(existsSync(ENDPOINTS)).toBe(true);
  const service = { service_name: `after-${name}`, service_url: 'http://127.0.0.1:9' };
  expect((await call('POST', '/services/register', service))[0]).toBe(200);
  // The phase is the operator's work.
  await expect.poll(() => kubectl('get', 'sreg', service.service_name), { timeout: 60_000 }).toContain('Registered');
});

test('SIGTERM ends everything and removes endpoints.json', async () => {
  const { stdout } = await run('ps', ['-eo', 'pid,args']);
  const ours = stdout
    .split('\n')
    .filter((line) => line.includes(DIRECTORY))
    .map((line) => Number.parseInt(line, 10));
  expect(ours.length).toBeGreaterThan(4);
  if (start.pid === undefined) throw new Error('npm start has no process id');
  process.kill(-start.pid, 'SIGTERM');
  // npm itself is gone at once. What it started is stopped in turn, and each may take three seconds.
  const alive = () => ours.filter((pid) => existsSync(`/proc/${pid}`));
  await expect.poll(alive, { timeout: 60_000 }).toEqual([]);
  expect(existsSync(ENDPOINTS)).toBe(false);
});

test('where a process does not start, it says why, and all that has begun is ended', { timeout: 180_000 }, async () => {
  // Federation ends at once, while others are still on their way.
  const env = { ...process.env, ROLLCALL_HEADER_RULES: '{"all": {"request": [{"pass": "cookie"}]}}' };
  const failing = spawn(process.execPath, ['local/src/main.ts'], { cwd: REPOSITORY, env, detached: true });
  onTestFinished(() => void failing.kill('SIGKILL'));
  let said = '';
  for (const stream of [failing.stdout, failing.stderr]) stream.on('data', (chunk) => (said += String(chunk)));
  await expect.poll(() => failing.exitCode, { timeout: 150_000 }).toBe(1);
  expect(said).toContain('has cookie, which is never passed on');
  const { stdout } = await run('ps', ['-eo', 'args']);
  expect(stdout).not.toContain(DIRECTORY);
});
