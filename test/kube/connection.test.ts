import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { type ClientRequest, createServer } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { Clock } from '@rollcall/platform/clock.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { connect, connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isUnavailable, KubeApiError, KubeUnreachableError } from '@rollcall/platform/kube/errors.ts';
import { type KubeObject, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { createNamespace, kubectl } from '../support/kube.ts';
import {
  type ClusterParts,
  connectFor,
  connectionOptions,
  connectWith,
  errorOf,
  leaseManifest,
  readCluster,
  startInformer,
  temporaryDirectory,
  writeKubeconfig,
} from './fixtures.ts';
import { startTcpRelay } from './tcp-relay.ts';

let parts: ClusterParts;
let namespace: string;

beforeAll(async () => {
  parts = await readCluster(inject('kubeconfig'));
  namespace = (await createNamespace('connection')).name;
});

interface SelfSubjectReview extends KubeObject {
  readonly status: { readonly userInfo: { readonly username: string; readonly groups: readonly string[] } };
}

async function whoAmI(connection: KubeConnection): Promise<SelfSubjectReview['status']['userInfo']> {
  const review = await connection.request<SelfSubjectReview>({
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
  });
  return review.status.userInfo;
}

const getVersion = { method: 'GET', path: '/version' } as const;

async function createToken(account: string): Promise<string> {
  return (await kubectl(['create', 'token', account, '--namespace', namespace])).trim();
}

async function createAccount(name: string): Promise<void> {
  await kubectl(['create', 'serviceaccount', name, '--namespace', namespace]);
}

test('connects with the client certificate of a kubeconfig, found by KUBECONFIG too', async () => {
  const environment = { KUBECONFIG: `/nowhere/at/all:${inject('kubeconfig')}` };
  const byEnvironment = await connect({ clock: systemClock, requestTimeoutMs: 20_000, maxSockets: 2, environment });
  onTestFinished(() => byEnvironment.close());
  for (const connection of [await connectFor(inject('kubeconfig')), byEnvironment]) {
    expect((await whoAmI(connection)).groups).toContain('system:masters');
  }
  expect(byEnvironment.namespace).toBe('default');
});

/**
 * Connects as a pod does, with the service account's files in a directory; closed when the test
 * ends.
 */
async function connectAsPod(directory: string, clock: Clock = systemClock): Promise<KubeConnection> {
  const ca = Buffer.from(parts.cluster['certificate-authority-data'], 'base64');
  await Promise.all([writeFile(join(directory, 'ca.crt'), ca), writeFile(join(directory, 'namespace'), 'other')]);
  const environment = {
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: String(parts.port),
    ROLLCALL_SERVICE_ACCOUNT_DIRECTORY: directory,
  };
  const connection = await connect({ ...connectionOptions, clock, environment });
  onTestFinished(() => connection.close());
  return connection;
}

test('connects with a service-account token and picks up one that was rotated in place', async () => {
  await Promise.all([createAccount('first'), createAccount('second')]);
  const directory = await temporaryDirectory();
  const tokenFile = join(directory, 'token');
  await writeFile(tokenFile, `${await createToken('first')}\n`);
  let now = 0;
  const connection = await connectAsPod(directory, { now: () => new Date(), monotonicMs: () => now });
  expect(connection.namespace).toBe('other');
  expect((await whoAmI(connection)).username).toBe(`system:serviceaccount:${namespace}:first`);

  await writeFile(tokenFile, await createToken('second'));
  now += 31_000;
  expect((await whoAmI(connection)).username).toBe(`system:serviceaccount:${namespace}:second`);
});

test('reads a token anew at once when the server refuses it, and keeps the old one while the file is missing', async () => {
  await createAccount('refused');
  const directory = await temporaryDirectory();
  const tokenFile = join(directory, 'token');
  await writeFile(tokenFile, 'no-token-at-all');
  let now = 0;
  const connection = await connectAsPod(directory, { now: () => new Date(), monotonicMs: () => now });
  await writeFile(tokenFile, await createToken('refused'));
  now += 2000;
  expect((await whoAmI(connection)).username).toContain('refused');

  await writeFile(tokenFile, '');
  now += 60_000;
  expect((await whoAmI(connection)).username).toContain('refused');
});

test('runs a credential plugin, and again once the server refuses what it answered', async () => {
  await createAccount('plugin');
  const directory = await temporaryDirectory();
  const plugin = join(directory, 'plugin');
  await writeFile(
    plugin,
    `#!/bin/sh
echo run >> '${directory}/runs'
test "$EXTRA" = value || exit 3
printf '{"kind":"ExecCredential","status":{"token":"%s"}}' "$(cat '${directory}/answer')"`,
  );
  await chmod(plugin, 0o700);
  const exec = { command: plugin, env: [{ name: 'EXTRA', value: 'value' }] };
  await writeFile(join(directory, 'answer'), 'no-token-at-all');
  let now = 0;
  const clock: Clock = { now: () => new Date(), monotonicMs: () => now };
  const connection = await connectWith({ cluster: parts.cluster, user: { exec } }, { clock });
  const runs = () => readFile(join(directory, 'runs'), 'utf8');
  await writeFile(join(directory, 'answer'), await createToken('plugin'));
  now += 2000;
  expect((await whoAmI(connection)).username).toContain(':plugin');
  await whoAmI(connection);
  expect(await runs()).toBe('run\nrun\n');

  const failing = { ...exec, env: [] };
  await expect(connectWith({ cluster: parts.cluster, user: { exec: failing } })).rejects.toThrow(Error);
});

test('an auth-provider of the old kind and impersonation are sent along', async () => {
  await createAccount('provider');
  const provider = {
    name: 'gcp',
    config: { 'access-token': await createToken('provider'), expiry: new Date(Date.now() + 3_600_000).toISOString() },
  };
  const connection = await connectWith({ cluster: parts.cluster, user: { 'auth-provider': provider } });
  expect((await whoAmI(connection)).username).toContain(':provider');
  const impersonating = await connectWith({
    cluster: parts.cluster,
    user: { ...parts.user, as: 'jane' },
  });
  expect((await whoAmI(impersonating)).username).toBe('jane');
});

test('refuses a server whose certificate another authority signed, or that is for another name', async () => {
  const other = await readCluster(inject('kubeconfig'));
  const { cluster } = other;
  const foreign = { server: cluster.server };
  const named = { ...cluster, 'tls-server-name': 'somebody.else' };
  for (const wrong of [foreign, named]) {
    const connection = await connectWith({ cluster: wrong, user: parts.user });
    const error = await errorOf(connection.request(getVersion));
    expect(error).toBeInstanceOf(KubeUnreachableError);
    expect(error.message).toMatch(/certificate|altnames/i);
  }
  const right = await connectWith({
    cluster: { ...cluster, 'tls-server-name': 'kubernetes.default.svc' },
    user: parts.user,
  });
  await expect(right.request(getVersion)).resolves.toHaveProperty('gitVersion');
  const unverified = await connectWith({ cluster: { ...foreign, 'insecure-skip-tls-verify': true }, user: parts.user });
  await expect(unverified.request(getVersion)).resolves.toHaveProperty('gitVersion');
});

test('requests share at most maxSockets connections, and watches take none of them', async () => {
  await using relay = await startTcpRelay(parts.port);
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  const connection = await connectWith({ cluster, user: parts.user }, { maxSockets: 3 });
  for (let call = 0; call < 20; call += 1) await connection.request(getVersion);
  expect(relay.accepted).toBeLessThanOrEqual(2);
  await Promise.all(Array.from({ length: 100 }, () => connection.request(getVersion)));
  expect(relay.accepted).toBe(3);
  const removal = { path: '/api/v1/namespaces/default/services/none', body: { kind: 'DeleteOptions' } };
  for (let call = 0; call < 5; call += 1) await codeOf(connection.request({ ...removal, method: 'DELETE' }));
  expect(relay.accepted).toBe(3);
  const stopping = new AbortController();
  const path = '/api/v1/namespaces/default/services';
  for (let watch = 0; watch < 4; watch += 1) {
    const body = await connection.stream(path, { watch: true, resourceVersion: '0' }, stopping.signal);
    body.on('error', () => undefined).resume();
  }
  await Promise.all(Array.from({ length: 100 }, () => connection.request(getVersion)));
  expect(relay.accepted).toBe(7);
  stopping.abort();
});

test('a rotated client certificate is used for what comes next, and ends no watch', async () => {
  await using relay = await startTcpRelay(parts.port);
  const directory = await temporaryDirectory();
  const [certificate, key] = [join(directory, 'cert'), join(directory, 'key')];
  const pem = Buffer.from(parts.user['client-certificate-data'], 'base64');
  await writeFile(certificate, pem);
  await writeFile(key, Buffer.from(parts.user['client-key-data'], 'base64'));
  let now = 0;
  const clock: Clock = { now: () => new Date(), monotonicMs: () => now };
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  const user = { 'client-certificate': 'cert', 'client-key': 'key' };
  const path = await writeKubeconfig({ cluster, user }, directory);
  const connection = await connectByFile(path, { clock, requestTimeoutMs: 20_000, maxSockets: 1 });
  onTestFinished(() => connection.close());
  const { informer, connectivity } = await startInformer({ connection, namespace });
  await expect.poll(() => informer.connectivity()).toBe('connected');
  const before = relay.accepted;

  await writeFile(certificate, `${pem.toString()}\n`);
  now += 31_000;
  expect((await whoAmI(connection)).groups).toContain('system:masters');
  expect(relay.accepted).toBe(before + 1);
  const leases = resourceClient(connection, leaseKind, namespace);
  await leases.create(leaseManifest('seen'));
  await expect.poll(() => informer.store.get(`${namespace}/seen`)).toBeDefined();
  expect(connectivity).toEqual(['connected']);

  await informer.stop();
  await connection.close();
  await expect.poll(() => relay.open).toBe(0);
});

test('goes over the proxy of the kubeconfig, and under a path of the server', async () => {
  const tunnels: string[] = [];
  const proxy = createServer();
  proxy.on('connect', (request, client) => {
    tunnels.push(request.url ?? '');
    const target = connectSocket({ port: parts.port, host: '127.0.0.1' }, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(client).pipe(target);
    });
    target.on('error', () => client.destroy());
    client.on('error', () => target.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => void proxy.close());
  const address = proxy.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const cluster = { ...parts.cluster, 'proxy-url': `http://127.0.0.1:${port}` };
  const connection = await connectWith({ cluster, user: parts.user }, { maxSockets: 2 });
  await Promise.all(Array.from({ length: 20 }, () => whoAmI(connection)));
  expect(tunnels).toEqual([`127.0.0.1:${parts.port}`, `127.0.0.1:${parts.port}`]);

  const below = { ...parts.cluster, server: `${parts.cluster.server}/apis/` };
  const prefixed = await connectWith({ cluster: below, user: parts.user });
  await expect(prefixed.request({ method: 'GET', path: '/coordination.k8s.io/v1' })).resolves.toHaveProperty(
    'resources',
  );
});

test('no error says a token, a key or a password', async () => {
  const token = 'very-secret-token';
  const users = [{ token }, { username: 'joe', password: 'very-secret-password' }, { token, as: 'jane' }];
  const { cluster } = parts;
  const clusters = [cluster, { ...cluster, server: 'https://127.0.0.1:1' }, { server: cluster.server }];
  for (const user of users) {
    for (const wrong of clusters) {
      const connection = await connectWith({ cluster: wrong, user });
      const errors = [
        await errorOf(
          connection.request({ method: 'POST', path: '/api/v1/namespaces', body: { data: 'very-secret' } }),
        ),
        await errorOf(connection.stream('/api/v1/services', { watch: true }, AbortSignal.timeout(5000))),
      ];
      for (const error of errors) expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('very-secret');
    }
  }
});

test('a 429 of priority and fairness is waited out as long as the time limit allows', async () => {
  await createAccount('throttled');
  const name = `${namespace}-throttled`;
  await limitToOneRequest(name, `system:serviceaccount:${namespace}:throttled`);
  const token = await createToken('throttled');
  const codes: string[] = [];
  const onRequest = (_method: string, code: string) => void codes.push(code);
  const entries = { cluster: parts.cluster, user: { token } };
  const impatient = await connectWith(entries, { requestTimeoutMs: 900 });
  const patient = await connectWith(entries, { onRequest });
  const seats: ClientRequest[] = [];
  // The limit has effect when the server has seen it, for requests that begin after that.
  const tryToExceed = async () => {
    seats.push(await occupySeat(token));
    return codeOf(impatient.request(getVersion));
  };
  await expect.poll(tryToExceed, { timeout: 20_000 }).toBe(429);
  const error = await errorOf(impatient.request(getVersion));
  expect(error).toMatchObject({ name: 'KubeApiError', retryAfterMs: 1000 });
  expect(isUnavailable(error)).toBe(true);

  const answer = patient.request(getVersion);
  await sleep(500);
  for (const seat of seats) seat.destroy();
  await expect(answer).resolves.toHaveProperty('gitVersion');
  expect(codes[0]).toBe('429');
  expect(codes.at(-1)).toBe('200');
});

async function codeOf(request: Promise<unknown>): Promise<number> {
  const error = await request.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof KubeApiError ? error.code : 200;
}

/** Removed when the test ends. */
async function limitToOneRequest(name: string, username: string): Promise<void> {
  const limited = {
    nominalConcurrencyShares: 0,
    lendablePercent: 0,
    borrowingLimitPercent: 0,
    limitResponse: { type: 'Reject' },
  };
  const rule = {
    subjects: [{ kind: 'User', user: { name: username } }],
    nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
    resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true }],
  };
  const flow = { matchingPrecedence: 50, priorityLevelConfiguration: { name }, rules: [rule] };
  const items = [
    { kind: 'PriorityLevelConfiguration', spec: { type: 'Limited', limited } },
    { kind: 'FlowSchema', spec: flow },
  ].map((item) => ({ apiVersion: 'flowcontrol.apiserver.k8s.io/v1', metadata: { name }, ...item }));
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await kubectl(['create', '-f', '-'], { stdin });
  onTestFinished(() => kubectl(['delete', '-f', '-'], { stdin }).then(() => undefined));
}

/** A request whose body never ends counts as executing. */
async function occupySeat(token: string): Promise<ClientRequest> {
  const url = `${parts.cluster.server}/apis/authentication.k8s.io/v1/selfsubjectreviews`;
  const seat = httpsRequest(url, {
    method: 'POST',
    ca: Buffer.from(parts.cluster['certificate-authority-data'], 'base64'),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': '1000' },
  });
  seat.on('error', () => undefined);
  onTestFinished(() => void seat.destroy());
  await new Promise((resolve) => void seat.write('{', resolve));
  return seat;
}
