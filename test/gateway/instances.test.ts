import type { ServerResponse } from 'node:http';
import { type Registration, register } from '@rollcall/client/registration.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Backend, createClient, startBackend, startGateway, type TestClient, tokenOf } from './gateway.ts';

let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let caller: TestClient;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('gateway-instances');
  const database = stack.use(await createDatabase());
  registry = stack.use(
    await startRegistry({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: { ROLLCALL_SERVICE_ADDRESSES: 'any' },
    }),
  );
  gateway = stack.use(await startGateway({ namespace, registry: registry.url, settings }));
  caller = await createClient(namespace, { id: 'caller' });
  token = await tokenOf(gateway, caller);
});

afterAll(() => stack.disposeAsync());

const settings = { ROLLCALL_SERVICE_ADDRESSES: 'any', ROLLCALL_ZONE: 'here' };

/** A program that registers itself. */
interface Program {
  readonly id: string;
  readonly backend: Backend;
  readonly registration: Registration;
}

async function startProgram(name: string, instanceId: string, zone?: string): Promise<Program> {
  const backend = await startBackend((_request, response) => void setTimeout(() => response.end(instanceId), 5));
  const facts = zone === undefined ? {} : { zone };
  const registration = register({ servers: registry.url, name, url: backend.url, instanceId, facts });
  await registration.registered;
  return { id: instanceId, backend, registration };
}

const ask = async (name: string, by = { url: gateway.url, token }) => {
  const answer = await fetch(`${by.url}/api/v1/${name}/x`, { headers: { authorization: `Bearer ${by.token}` } });
  return answer.status === 200 ? answer.text() : `status ${answer.status}`;
};

const asks = (name: string, count: number) => Promise.all(Array.from({ length: count }, () => ask(name)));

/** Waits until the gateway sends requests to these and no others. */
async function untilServedBy(name: string, ids: readonly string[]): Promise<void> {
  const served = async () => [...new Set(await asks(name, 20))].toSorted();
  await vi.waitFor(async () => expect(await served()).toEqual(ids), { timeout: 10_000 });
}

test('requests go to all instances, and none fails while one after the other leaves and comes', async () => {
  const programs = await Promise.all(['a', 'b', 'c'].map((id) => startProgram('shop', id)));
  await untilServedBy('shop', ['a', 'b', 'c']);
  const over = new AbortController();
  const answers: string[] = [];
  const callers = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) answers.push(await ask('shop'));
  });
  // As a rolling update does it: one more, then one less, which ends once nobody calls it.
  for (const [index, old] of programs.entries()) {
    const next = await startProgram('shop', `next-${index}`);
    stack.use(next.backend).server.unref();
    stack.use(next.registration);
    await old.registration.unregister();
    await vi.waitFor(async () => expect(await asks('shop', 10)).not.toContain(old.id), { timeout: 10_000 });
    await old.backend[Symbol.asyncDispose]();
  }
  await expect.poll(() => answers.length).toBeGreaterThan(30);
  over.abort();
  await Promise.all(callers);
  expect(answers.filter((answer) => answer.startsWith('status'))).toEqual([]);
  await untilServedBy('shop', ['next-0', 'next-1', 'next-2']);
});

test('one that drains gets no more requests, what it has ends, and the last one serves on', async () => {
  let isHolding = false;
  const held: ServerResponse[] = [];
  const slow = await startBackend((_request, response) => {
    if (isHolding) held.push(response);
    else response.end('slow');
  });
  stack.use(slow);
  const draining = stack.use(register({ servers: registry.url, name: 'drains', url: slow.url, instanceId: 'slow' }));
  await draining.registered;
  await untilServedBy('drains', ['slow']);
  isHolding = true;
  const underWay = ask('drains');
  await vi.waitFor(() => expect(held).toHaveLength(1), { timeout: 10_000 });
  const other = await startProgram('drains', 'other');
  stack.use(other.backend);
  const report = async (instance_id: string, status: string) => {
    const body = { service_name: 'drains', instance_id, status };
    expect((await registry.call('POST', '/webhooks/health', body)).status).toBe(200);
  };
  await report('slow', 'draining');
  await vi.waitFor(
    async () => {
      const before = slow.requests.length;
      const all = Promise.all(Array.from({ length: 10 }, () => Promise.race([ask('drains'), timeout(200)])));
      expect(new Set(await all)).toEqual(new Set(['other']));
      expect(slow.requests.length).toBe(before);
    },
    { timeout: 10_000 },
  );
  for (const response of held) response.end('slow');
  expect(await underWay).toBe('slow');
  // Nobody is well: better that than nobody.
  await report('other', 'unhealthy');
  await draining.unregister();
  await untilServedBy('drains', ['other']);
  await other.registration.unregister();
});

const timeout = (ms: number) => new Promise<string>((resolve) => void setTimeout(resolve, ms, 'timeout'));

test('one that is killed is left out, and its requests go to the others', async () => {
  const [dead, alive] = await Promise.all(['dead', 'alive'].map((id) => startProgram('killed', id)));
  if (dead === undefined || alive === undefined) throw new Error('Two were started');
  await untilServedBy('killed', ['alive', 'dead']);
  await dead.backend[Symbol.asyncDispose]();
  expect(new Set(await asks('killed', 50))).toEqual(new Set(['alive']));
  for (const { registration } of [dead, alive]) await registration.unregister();
  await alive.backend[Symbol.asyncDispose]();
});

test('the own zone gets all requests, and none fails when it is lost and comes back', async () => {
  const there = await startProgram('zoned', 'there', 'there');
  await untilServedBy('zoned', ['there']);
  const own = await Promise.all(['a', 'b'].map((id) => startProgram('zoned', id, 'here')));
  await untilServedBy('zoned', ['a', 'b']);
  const over = new AbortController();
  const answers: string[] = [];
  const callers = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) answers.push(await ask('zoned'));
  });
  await Promise.all(own.map(({ backend }) => backend[Symbol.asyncDispose]()));
  expect(new Set(await asks('zoned', 100))).toEqual(new Set(['there']));
  const back = await startProgram('zoned', 'c', 'here');
  for (const { registration } of own) await registration.unregister();
  await untilServedBy('zoned', ['c']);
  await expect.poll(() => answers.length).toBeGreaterThan(30);
  over.abort();
  await Promise.all(callers);
  expect(answers.filter((answer) => answer.startsWith('status'))).toEqual([]);
  for (const { registration, backend } of [there, back]) {
    await registration.unregister();
    await backend[Symbol.asyncDispose]();
  }
});

test('one that joins gets few requests at first, and those that the gateway found get all of theirs', async () => {
  const found = await startProgram('joined', 'found');
  const slow = { ...settings, ROLLCALL_SLOW_START_SECONDS: '300' };
  await using late = await startGateway({ namespace, registry: registry.url, settings: slow });
  const by = { url: late.url, token: await tokenOf(late, caller) };
  const joining = await startProgram('joined', 'joining');
  await vi.waitFor(async () => expect(await ask('joined', by)).toBe('joining'), { timeout: 10_000, interval: 1 });
  const answers: string[] = [];
  for (let count = 0; count < 100; count += 1) answers.push(await ask('joined', by));
  const share = answers.filter((answer) => answer === 'joining').length;
  expect(share).toBeGreaterThan(0);
  // It has a tenth of its weight; all of it would be 50.
  expect(share).toBeLessThan(30);
  for (const { registration, backend } of [found, joining]) {
    await registration.unregister();
    await backend[Symbol.asyncDispose]();
  }
});
