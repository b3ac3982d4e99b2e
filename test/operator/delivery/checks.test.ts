import { once } from 'node:events';
import { mkdtemp, readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { AnalysisCheck, DeliveryJob, HttpProbe } from '@rollcall/crds/types.gen.ts';
import { createCertificates } from '@rollcall/local/certificates.ts';
import type { CheckSubject, ProbeTarget } from '@rollcall/operator/delivery/checks/check.ts';
import { createCheckRunner } from '@rollcall/operator/delivery/checks/check-runner.ts';
import { afterAll, expect, inject, onTestFinished, test } from 'vitest';

const checkRunner = createCheckRunner('any');
const guarded = createCheckRunner('cluster');
afterAll(() => Promise.all([checkRunner.close(), guarded.close()]));

const job: DeliveryJob = {
  apiVersion: 'rollcall.dev/v1alpha1',
  kind: 'DeliveryJob',
  metadata: { name: 'deploy-shop', namespace: 'rollcall', uid: 'job-1', resourceVersion: '5', finalizers: ['a/b'] },
  spec: {
    serviceName: 'shop',
    operation: 'Deploy',
    version: '2.0.0',
    artifact: { type: 'image', url: 'registry.example.com/shop:2.0.0' },
    abort: false,
    promote: false,
  },
  status: { phase: 'Verifying', stage: 'Testing' },
};

interface Asked {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly type: string | undefined;
  readonly body: string;
}

interface TestServer {
  readonly port: number;
  readonly asked: readonly Asked[];
}

/** @param address on the loopback network; each stands for a pod. */
async function serve(listener: RequestListener, address = '127.0.0.1', port = 0): Promise<TestServer> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked.push({ method, url, type: headers['content-type'], body: Buffer.concat(chunks).toString() });
      listener(request, response);
    });
  });
  server.listen(port, address);
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, asked };
}

function measure(
  check: Partial<AnalysisCheck>,
  {
    pods = [],
    signal = new AbortController().signal,
    by = checkRunner,
  }: Partial<Pick<CheckSubject, 'pods'>> & { signal?: AbortSignal; by?: typeof checkRunner } = {},
) {
  const whole: AnalysisCheck = {
    name: 'check',
    initialDelaySeconds: 0,
    intervalSeconds: 1,
    count: 1,
    failureLimit: 0,
    ...check,
  };
  return by.measure(whole, { job, pods }, signal);
}

const json =
  (status: number, body: unknown): RequestListener =>
  (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

// The answers are written as the document "HTTP API" of Prometheus describes them.
const vector = (...values: string[]) => ({
  status: 'success',
  data: {
    resultType: 'vector',
    result: values.map((value, index) => ({ metric: { pod: `shop-${index}` }, value: [1435781451.781, value] })),
  },
});
const scalar = (value: string) => ({
  status: 'success',
  data: { resultType: 'scalar', result: [1435781451.781, value] },
});

const results: { sentence: string; body: unknown; status?: number; passed: boolean; message: string | RegExp }[] = [
  { sentence: 'one number within the threshold', body: vector('0.02'), passed: true, message: 'the result is 0.02' },
  { sentence: 'the bound itself', body: vector('0.05'), passed: true, message: 'the result is 0.05' },
  { sentence: 'a number above', body: vector('0.06'), passed: false, message: 'the result 0.06 is above 0.05' },
  { sentence: 'a number below', body: scalar('-1'), passed: false, message: 'the result -1 is below 0' },
  { sentence: 'a scalar', body: scalar('1e-2'), passed: true, message: 'the result is 0.01' },
  { sentence: 'infinity', body: vector('+Inf'), passed: false, message: 'the result Infinity is above 0.05' },
  { sentence: 'NaN', body: vector('NaN'), passed: false, message: 'the query yields NaN' },
  { sentence: 'nothing', body: vector(), passed: false, message: 'the query yields nothing' },
  { sentence: 'several', body: vector('0', '0'), passed: false, message: 'the query yields 2 numbers instead of one' },
  {
    sentence: 'a matrix',
    body: { status: 'success', data: { resultType: 'matrix', result: [] } },
    passed: false,
    message: 'the query yields a matrix instead of one number',
  },
  {
    sentence: 'a native histogram',
    body: {
      status: 'success',
      data: { resultType: 'vector', result: [{ metric: {}, histogram: [1, { count: '1' }] }] },
    },
    passed: false,
    message: 'the query yields a histogram instead of a number',
  },
  {
    sentence: 'a refusal',
    status: 400,
    body: { status: 'error', errorType: 'bad_data', error: 'invalid parameter "query": 1:3: parse error' },
    passed: false,
    message: 'Prometheus answered 400: invalid parameter "query": 1:3: parse error',
  },
  {
    sentence: 'what is no answer of Prometheus',
    status: 502,
    body: 'unavailable',
    passed: false,
    message: /answered 502 with/,
  },
];

test.each(results)('a Prometheus query: $sentence', async ({ status = 200, body, passed, message }) => {
  const { port, asked } = await serve(json(status, body));
  const query = 'sum(rate(errors{job="shop"}[1m])) / 2';
  const prometheus = { address: `http://127.0.0.1:${port}/prometheus/`, query, threshold: { min: 0, max: 0.05 } };
  const result = await measure({ prometheus });
  expect(result.passed).toBe(passed);
  expect(result.message).toMatch(message);
  expect(asked).toMatchObject([
    { method: 'POST', url: '/prometheus/api/v1/query', type: 'application/x-www-form-urlencoded' },
  ]);
  expect(new URLSearchParams(asked[0]?.body).get('query')).toBe(query);
});

test('Prometheus that is unavailable, or answers without end, is a failed measurement', async () => {
  const threshold = { max: 1 };
  const unreachable = await measure({ prometheus: { address: 'http://127.0.0.1:1', query: 'up', threshold } });
  expect(unreachable).toEqual({
    passed: false,
    message: expect.stringContaining('it could not be measured: no answer: '),
  });
  const { port } = await serve((_, response) => response.end(Buffer.alloc(2 * 1024 * 1024, 'x')));
  const endless = await measure({ prometheus: { address: `http://127.0.0.1:${port}`, query: 'up', threshold } });
  expect(endless).toEqual({ passed: false, message: 'Prometheus answered with more than 1048576 bytes' });
});

const probe = (port: number, rest: Partial<HttpProbe> = {}): Partial<AnalysisCheck> => ({
  http: { path: '/healthz?deep=1', port, scheme: 'HTTP', timeoutSeconds: 5, ...rest },
});
const local: ProbeTarget[] = [{ name: 'shop-1', ip: '127.0.0.1' }];

const probes: { sentence: string; answer: RequestListener; spec?: Partial<HttpProbe>; fault?: string | RegExp }[] = [
  { sentence: '200 passes', answer: json(200, {}) },
  { sentence: '500 fails', answer: json(500, {}), fault: 'pod shop-1: it answered 500' },
  {
    sentence: 'a redirect passes as what it is, and is not followed',
    answer: (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  },
  {
    sentence: 'a redirect fails where another status is expected',
    answer: (_, response) => response.writeHead(302, { location: '/' }).end(),
    spec: { expectedStatuses: [200] },
    fault: 'pod shop-1: it answered 302',
  },
  { sentence: 'an expected 404 passes', answer: json(404, {}), spec: { expectedStatuses: [200, 404] } },
  { sentence: 'expected text passes', answer: json(200, { version: '2' }), spec: { bodyContains: '"version":"2"' } },
  {
    sentence: 'missing text fails',
    answer: json(200, { version: '1' }),
    spec: { bodyContains: '"version":"2"' },
    fault: 'its answer lacks the expected text',
  },
  {
    sentence: 'text after 64 KiB is not seen',
    answer: (_, response) => response.end(`${'x'.repeat(64 * 1024)}good`),
    spec: { bodyContains: 'good' },
    fault: 'its answer lacks the expected text',
  },
  {
    sentence: 'text before 64 KiB of an endless answer is seen',
    answer: (_, response) => response.write(`good${'x'.repeat(128 * 1024)}`),
    spec: { bodyContains: 'good' },
  },
  {
    sentence: 'an answer that is slower than it may be fails',
    answer: (_, response) => setTimeout(() => response.end(), 300),
    spec: { maxLatencyMilliseconds: 100 },
    fault: /it took \d+ ms, more than 100 ms/,
  },
  {
    sentence: 'no answer fails',
    answer: () => undefined,
    spec: { timeoutSeconds: 1 },
    fault: 'pod shop-1: no answer within 1 s',
  },
  {
    sentence: 'half an answer fails',
    answer: (_, response) => response.write('half'),
    spec: { timeoutSeconds: 1 },
    fault: 'no answer within 1 s',
  },
];

test.each(probes)('an HTTP probe: $sentence', async ({ answer, spec, fault }) => {
  const { port, asked } = await serve(answer);
  const result = await measure(probe(port, spec), { pods: local });
  expect(result.passed).toBe(fault === undefined);
  expect(result.message).toMatch(fault ?? '1 pod answered as expected');
  expect(asked).toMatchObject([{ method: 'GET', url: '/healthz?deep=1' }]);
});

test('an HTTP probe asks every pod at its own address, and all have to pass', async () => {
  const first = await serve(json(200, {}), '127.0.0.2');
  const second = await serve(json(503, {}), '127.0.0.3', first.port);
  const pods = ['127.0.0.2', '127.0.0.3', '127.0.0.4'].map((ip) => ({ name: `shop-${ip.slice(-1)}`, ip }));
  expect(await measure(probe(first.port), { pods: pods.slice(0, 1) })).toMatchObject({ passed: true });
  const result = await measure(probe(first.port), { pods: [...pods, { name: 'shop-5', ip: undefined }] });
  expect(result).toEqual({ passed: false, message: expect.stringMatching(/^pod shop-\d: .* \(and 2 more\)$/) });
  expect([first.asked.length, second.asked.length]).toEqual([2, 1]);
  expect(await measure(probe(first.port))).toMatchObject({ passed: false, message: /no pod/ });
});

test('an HTTP probe does not verify the certificate of a pod', async () => {
  const files = await createCertificates(await mkdtemp(join(inject('temporaryDirectory'), 'probe-')));
  const [key, cert] = await Promise.all([files.serverKey, files.serverCertificate].map((file) => readFile(file)));
  if (key === undefined || cert === undefined) throw new Error('unreachable');
  const server = createSecureServer({ key, cert }, (_, response) => response.end('ok'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  expect(await measure(probe(port, { scheme: 'HTTPS' }), { pods: local })).toMatchObject({ passed: true });
});

test.each([
  { status: 204, passed: true },
  { status: 302, passed: false },
  { status: 500, passed: false },
])('a webhook that answers $status passes: $passed', async ({ status, passed }) => {
  const { port, asked } = await serve((_, response) => response.writeHead(status, { location: '/' }).end());
  const webhook = { url: `http://127.0.0.1:${port}/verify?token=t`, timeoutSeconds: 5 };
  expect(await measure({ webhook })).toEqual({ passed, message: `the webhook answered ${status}` });
  expect(asked).toMatchObject([{ method: 'POST', url: '/verify?token=t', type: 'application/json' }]);
  const { apiVersion, kind, spec, status: jobStatus } = job;
  const metadata = { name: 'deploy-shop', namespace: 'rollcall', uid: 'job-1' };
  expect(JSON.parse(asked[0]?.body ?? '')).toEqual({ apiVersion, kind, metadata, spec, status: jobStatus });
});

test('a webhook that hangs fails in time, and one that is cancelled ends at once', async () => {
  const { port, asked } = await serve(() => undefined);
  const webhook = { url: `http://127.0.0.1:${port}/`, timeoutSeconds: 1 };
  expect(await measure({ webhook })).toEqual({
    passed: false,
    message: 'it could not be measured: no answer within 1 s',
  });
  const controller = new AbortController();
  const cancelled = measure({ webhook: { ...webhook, timeoutSeconds: 300 } }, { signal: controller.signal });
  await expect.poll(() => asked.length, { timeout: 10_000 }).toBe(2);
  controller.abort(new Error('the stage has ended'));
  await expect(cancelled).rejects.toThrow('the stage has ended');
});

test('what a policy names is not asked on this machine, unless that is allowed; pods are', async () => {
  const { port, asked } = await serve(json(200, vector('0')));
  const url = `http://127.0.0.1:${port}`;
  const prometheus = { address: url, query: 'up', threshold: { max: 1 } };
  const webhook = { url, timeoutSeconds: 5 };
  for (const check of [{ prometheus }, { webhook }]) {
    const result = await measure(check, { by: guarded });
    expect(result).toEqual({
      passed: false,
      message: expect.stringMatching(/Connections to 127\.0\.0\.1 are not allowed/),
    });
  }
  expect(asked).toEqual([]);
  const http = { scheme: 'HTTP', port, path: '/', timeoutSeconds: 5 } as const;
  const pods = [{ name: 'shop-1', ip: '127.0.0.1' }];
  expect(await measure({ http }, { by: guarded, pods })).toMatchObject({ passed: true });
});
