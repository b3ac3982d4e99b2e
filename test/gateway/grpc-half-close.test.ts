import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
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
const framed = Buffer.from([0, 0, 0, 0, 1, 7]);
const allowed = { headers: {}, refusal: undefined };
/** How long a call is admitted: it may have ended before, or end after. */
const ADMISSION_MS = [0, 100];

beforeEach(() => {
  proxy.allowance = () => allowed;
});

function admitAfter(ms: number): void {
  proxy.allowance = async () => {
    await new Promise((done) => setTimeout(done, ms));
    return allowed;
  };
}

async function connectTo(port: number): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  return session;
}

interface CallOptions {
  readonly method: string;
  /** With the head, and not in a frame of its own. */
  readonly endStream?: boolean;
  readonly metadata?: Record<string, string>;
}

function begin(session: ClientHttp2Session, { method, endStream = false, metadata }: CallOptions): ClientHttp2Stream {
  const head = {
    ':method': 'POST',
    ':path': `/rollcall.test.v1.Echo/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${TOKEN}`,
    ...metadata,
  };
  return session.request(head, { endStream }).on('error', () => undefined);
}

/** What the call ends with. */
async function ended(stream: ClientHttp2Stream): Promise<{ status: unknown; body: string }> {
  const statuses: unknown[] = [];
  stream.on('response', (head) => statuses.push(head['grpc-status']));
  stream.on('trailers', (trailers) => statuses.push(trailers['grpc-status']));
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return { status: statuses.findLast((found) => found !== undefined), body: Buffer.concat(chunks).toString('latin1') };
}

describe.each(ADMISSION_MS)('a call that is admitted after %d ms', (ms) => {
  beforeEach(() => admitAfter(ms));

  test.each([
    ['Unary', false],
    ['Unary', true],
    ['ClientStream', false],
    ['ClientStream', true],
    ['ServerStream', false],
    ['ServerStream', true],
    ['Bidi', false],
    ['Bidi', true],
    ['Nothing', false],
    ['Nothing', true],
  ])('%s without a message ends as at the service itself, its end with the head: %j', async (method, endStream) => {
    const answers = await Promise.all(
      [proxy.port, backend.port].map(async (port) => {
        const stream = begin(await connectTo(port), { method, endStream });
        if (!endStream) stream.end();
        return ended(stream);
      }),
    );
    expect(answers[0]?.status).toMatch(/^\d+$/);
    expect(answers[0]).toEqual(answers[1]);
  });

  test('a message in whole, and the end in a frame of its own', async () => {
    const stream = begin(await connectTo(proxy.port), { method: 'Unary' });
    stream.write(framed);
    await new Promise((done) => setTimeout(done, 20));
    stream.end();
    expect(await ended(stream)).toEqual({ status: '0', body: framed.toString('latin1') });
  });

  test('streams of grpc-js that end at once', async () => {
    const { promise, resolve } = Promise.withResolvers<unknown[]>();
    client.clientStream((error, answer) => resolve([error, answer?.toString()])).end();
    const both = client.bidi();
    const over = statusOf(both);
    both.on('data', () => undefined).end();
    expect(await promise).toEqual([null, '{"messages":0,"bytes":0}']);
    expect((await over).code).toBe(status.OK);
  });

  test('an empty message is one', async () => {
    expect((await client.unary(Buffer.alloc(0))).message).toEqual(Buffer.alloc(0));
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const upload = client.clientStream((_error, answer) => resolve(answer?.toString()));
    upload.write(Buffer.alloc(0));
    upload.end();
    expect(await promise).toBe('{"messages":1,"bytes":0}');
  });

  test('a status without a message, to a call that ended at once', async () => {
    const stream = begin(await connectTo(proxy.port), { method: 'ClientStream', metadata: { fail: '5' } });
    stream.end();
    expect(await ended(stream)).toEqual({ status: '5', body: '' });
  });

  test('that is reset after its end keeps nothing', async () => {
    const session = await connectTo(proxy.port);
    for (const endStream of [true, false]) {
      const stream = begin(session, { method: 'Bidi', endStream });
      if (!endStream) stream.end();
      stream.close(constants.NGHTTP2_CANCEL);
    }
    await expect.poll(() => gaugeOf(proxy, 'open_calls'), { timeout: 10_000 }).toBe(0);
    expect((await client.unary(hello)).message).toEqual(hello);
  });
});

test('a call that is reset after its end is cancelled at the service', async () => {
  using direct = createEchoClient(backend.port);
  const { cancelled, unary } = await direct.stats();
  const stream = begin(await connectTo(proxy.port), { method: 'Unary', metadata: { 'delay-ms': '20000' } });
  stream.end(framed);
  await expect.poll(async () => (await direct.stats()).unary).toBe(unary + 1);
  stream.close(constants.NGHTTP2_CANCEL);
  await expect.poll(async () => (await direct.stats()).cancelled).toBe(cancelled + 1);
});

test('an end after the answer has begun', async () => {
  const stream = client.bidi();
  stream.write(hello);
  await once(stream, 'data');
  stream.resume();
  const over = statusOf(stream);
  stream.end();
  expect((await over).code).toBe(status.OK);
});
