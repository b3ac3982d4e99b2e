import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { status } from '@grpc/grpc-js';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Backend,
  createEchoClient,
  type EchoClient,
  gaugeOf,
  startBackend,
  startProxy,
  statusOf,
  type TestProxy,
  TOKEN,
} from './grpc-fixture.ts';

let backend: Backend;
let proxy: TestProxy;
let client: EchoClient;

beforeAll(async () => {
  backend = await startBackend();
  proxy = await startProxy({ backendPort: backend.port });
  client = createEchoClient(proxy.port, { token: TOKEN });
});

afterAll(async () => {
  client[Symbol.dispose]();
  await proxy[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

const hello = Buffer.from('hello');

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const messages: Buffer[] = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

describe('the four kinds of call', () => {
  test('unary', async () => {
    const { message, error, status: final } = await client.unary(hello);
    expect([message?.toString(), error, final.code]).toEqual(['hello', undefined, status.OK]);
  });

  test('an empty message is a message', async () => {
    expect((await client.unary(Buffer.alloc(0))).message).toEqual(Buffer.alloc(0));
  });

  test('server streaming', async () => {
    const messages = await collect(client.serverStream({ messages: 100, bytes: 1000 }));
    expect(messages.map(({ length }) => length)).toEqual(Array.from({ length: 100 }, () => 1000));
    expect(messages[99]?.[0]).toBe(99);
  });

  test('a stream of no messages', async () => {
    expect(await collect(client.serverStream({ messages: 0 }))).toEqual([]);
  });

  test('client streaming', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const call = client.clientStream((error, answer) => (error === null ? resolve(String(answer)) : reject(error)));
    for (let message = 0; message < 50; message += 1) call.write(Buffer.alloc(100));
    call.end();
    expect(JSON.parse(await promise)).toEqual({ messages: 50, bytes: 5000 });
  });

  test('both ways, message by message', async () => {
    const call = client.bidi();
    const final = statusOf(call);
    for (let round = 0; round < 20; round += 1) {
      call.write(Buffer.from(`round ${round}`));
      const [echo] = (await once(call, 'data')) as [Buffer];
      expect(echo.toString()).toBe(`round ${round}`);
    }
    call.end();
    expect((await final).code).toBe(status.OK);
  });
});

test('metadata reaches the backend and comes back as head and trailers, binary values byte for byte', async () => {
  const binary = randomBytes(300);
  const { head, status: final } = await client.unary(hello, { plain: 'a, b', 'blob-bin': binary });
  expect(head?.get('h-plain')).toEqual(['a, b']);
  expect(head?.get('h-blob-bin')).toEqual([binary]);
  expect(final.metadata.get('t-plain')).toEqual(['a, b']);
  expect(final.metadata.get('t-blob-bin')).toEqual([binary]);
});

test('an error of the backend comes with its code, message and trailers', async () => {
  const { error, status: final } = await client.unary(hello, {
    fail: '9',
    'fail-message': encodeURIComponent('läuft: 100 % nicht'),
    why: 'so',
  });
  expect(error).toMatchObject({ code: status.FAILED_PRECONDITION, details: 'läuft: 100 % nicht' });
  expect(final.metadata.get('t-why')).toEqual(['so']);
});

test('an error in the midst of a stream comes behind what was sent before', async () => {
  const stream = client.serverStream({ messages: 5, bytes: 10, thenFail: status.DATA_LOSS });
  let messages = 0;
  stream.on('data', () => {
    messages += 1;
  });
  stream.on('error', () => undefined);
  expect((await statusOf(stream)).code).toBe(status.DATA_LOSS);
  expect(messages).toBe(5);
});

test('the backend gets the identity of the caller, and nothing that callers claim of it', async () => {
  const claims = { 'x-rollcall-subject': 'admin', 'x-rollcall-scopes': 'all', 'x-forwarded-for': '10.0.0.1' };
  const { head } = await client.unary(hello, claims);
  expect(head?.get('h-x-rollcall-subject')).toEqual(['alice']);
  expect(head?.get('h-x-rollcall-service')).toEqual(['rollcall.test']);
  for (const name of ['h-x-rollcall-scopes', 'h-x-forwarded-for', 'h-authorization'])
    expect(head?.get(name)).toEqual([]);
});

test.each([
  ['20 MB in one message', 20 * 1024 * 1024, {}],
  ['a message that its caller has compressed', 200_000, { 'grpc.default_compression_algorithm': 2 }],
])('%s', async (_what, bytes, channel) => {
  using special = createEchoClient(proxy.port, { token: TOKEN, channel });
  const message = Buffer.alloc(bytes, 'abcdefg');
  const answer = await special.unary(message);
  expect(answer.error).toBeUndefined();
  expect(answer.message?.equals(message)).toBe(true);
});

describe('deadlines', () => {
  test('the backend gets how much is left', async () => {
    const { head } = await client.unary(hello, {}, { deadline: Date.now() + 10_000 });
    const leftMs = Number(head?.get('h-left-ms')[0]);
    expect(leftMs).toBeGreaterThan(1000);
    expect(leftMs).toBeLessThanOrEqual(10_000);
    expect((await client.unary(hello)).head?.get('h-left-ms')).toEqual(['Infinity']);
  });
});

describe('cancellation', () => {
  test('of a unary call: the backend knows', async () => {
    const { cancelled, unary } = await client.stats();
    const { call, answer } = client.startUnary(hello, { 'delay-ms': '20000' });
    await waitUntil('it arrives', async () => (await client.stats()).unary > unary, { timeoutMs: 10_000 });
    call.cancel();
    expect((await answer).error?.code).toBe(status.CANCELLED);
    await waitUntil('the backend sees it', async () => (await client.stats()).cancelled > cancelled, {
      timeoutMs: 10_000,
    });
  });

  test('of a stream: the backend knows', async () => {
    const { cancelled } = await client.stats();
    const call = client.bidi();
    call.on('error', () => undefined);
    call.write(hello);
    await once(call, 'data');
    const ended = statusOf(call);
    call.cancel();
    expect((await ended).code).toBe(status.CANCELLED);
    await waitUntil('the backend sees it', async () => (await client.stats()).cancelled > cancelled, {
      timeoutMs: 10_000,
    });
  });
});

test('a backend may answer before it has the whole call; the caller gets the sign to stop', async () => {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = client.clientStream((error, answer) => (error === null ? resolve(String(answer)) : reject(error)), {
    'answer-after': '3',
  });
  call.on('error', () => undefined);
  const timer = setInterval(() => call.write(Buffer.alloc(10)), 5);
  expect(JSON.parse(await promise)).toEqual({ messages: 3, bytes: 30 });
  clearInterval(timer);
});

test('1000 calls at once', async () => {
  // As many as one subject may have.
  await waitUntil('no call is left of the tests before', async () => (await gaugeOf(proxy, 'open_calls')) === 0, {
    timeoutMs: 10_000,
  });
  const answers = await Promise.all(
    Array.from({ length: 1000 }, (_unused, index) => client.unary(Buffer.from(String(index)), { 'delay-ms': '100' })),
  );
  expect(answers.flatMap(({ error }) => error?.message ?? [])).toEqual([]);
  expect(answers.map(({ message }) => message?.toString())).toEqual(answers.map((_answer, index) => String(index)));
});

test('calls are counted by service and code', async () => {
  await client.unary(hello, { fail: '5' });
  const text = await proxy.metrics.metrics();
  expect(text).toMatch(/rollcall_gateway_grpc_calls_total\{service="rollcall.test",code="OK".*\} [1-9]/);
  expect(text).toMatch(/rollcall_gateway_grpc_calls_total\{service="rollcall.test",code="NOT_FOUND".*\} [1-9]/);
});
