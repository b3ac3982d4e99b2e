import { once } from 'node:events';
import { connect } from 'node:http2';
import { status } from '@grpc/grpc-js';
import type { Verdict } from '@rollcall/gateway/admission/limits.ts';
import { GatewayError } from '@rollcall/gateway/errors.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  type Backend,
  callerNamed,
  createEchoClient,
  type EchoClient,
  gaugeOf,
  startBackend,
  startProxy,
  statusOf,
  type TestProxy,
  TOKEN,
  targetAt,
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
const allowed: Verdict = { headers: {}, refusal: undefined };

function limited(headers: Record<string, string>): Verdict {
  return { headers, refusal: new GatewayError('RATE_LIMITED', { headers }) };
}

beforeEach(() => {
  proxy.allowance = () => allowed;
  proxy.identity = () => [];
  proxy.isKnown = true;
});

interface RawAnswer {
  readonly head: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

/** Node's client would not send a header twice that may come once only. */
const LAX = { maxOutstandingPings: 10, strictSingleValueFields: false };

/**
 * One request of HTTP/2, as no gRPC library would send it.
 *
 * @param headers an array has names and values in turn.
 */
async function request(headers: Record<string, string> | string[], body?: Buffer): Promise<RawAnswer> {
  const session = connect(`http://127.0.0.1:${proxy.port}`, LAX);
  const usual = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };
  const stream = Array.isArray(headers)
    ? session.request([...Object.entries(usual).flat(), ...headers])
    : session.request({ ...usual, ...headers });
  let trailers: Record<string, unknown> = {};
  stream.on('trailers', (received) => {
    trailers = received;
  });
  const responded = once(stream, 'response');
  stream.end(body);
  const [head] = (await responded) as [Record<string, unknown>];
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  session.close();
  return { head, trailers, body: Buffer.concat(chunks) };
}

describe('identity', () => {
  test.each([
    ['no token', undefined],
    ['an unknown token', 'nobody'],
    ['no token but a word', 'two words'],
  ])('%s is refused', async (_what, token) => {
    using stranger = createEchoClient(proxy.port, { token });
    const before = (await client.stats()).unary;
    expect((await stranger.unary(hello)).error?.code).toBe(status.UNAUTHENTICATED);
    expect((await client.stats()).unary).toBe(before);
  });

  test.each(['authorization', 'rollcall-service', 'grpc-timeout'])('two of %s are refused', async (name) => {
    const value = name === 'authorization' ? `Bearer ${TOKEN}` : '1S';
    const twice = [name, value, name, value];
    const { head } = await request([':path', '/rollcall.test.v1.Echo/Unary', ...twice]);
    expect(head['grpc-status']).toBe(String(status.INVALID_ARGUMENT));
  });

  test('who may not call a service gets that status', async () => {
    proxy.identity = () => {
      throw new GatewayError('INSUFFICIENT_SCOPE');
    };
    expect((await client.unary(hello)).error?.code).toBe(status.PERMISSION_DENIED);
  });

  test('a stream ends when its token is revoked', async () => {
    proxy.callers.set('passing', callerNamed('bob'));
    using passing = createEchoClient(proxy.port, { token: 'passing' });
    const stream = passing.bidi();
    stream.on('error', () => undefined);
    stream.write(hello);
    await once(stream, 'data');
    const ended = statusOf(stream);
    proxy.callers.delete('passing');
    expect((await ended).code).toBe(status.UNAUTHENTICATED);
  });

  test('a fault of ours is INTERNAL and says nothing of it', async () => {
    proxy.identity = () => {
      throw new Error('the password is x');
    };
    const { error } = await client.unary(hello);
    expect(error?.code).toBe(status.INTERNAL);
    expect(error?.details).not.toContain('password');
  });
});

describe('limits', () => {
  test('over it: RESOURCE_EXHAUSTED, with when to come back', async () => {
    const before = (await client.stats()).unary;
    proxy.allowance = async () => limited({ 'x-ratelimit-remaining': '0', 'retry-after': '2' });
    const { error, status: final } = await client.unary(hello);
    expect(error?.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(final.metadata.get('grpc-retry-pushback-ms')).toEqual(['2000']);
    expect(final.metadata.get('x-ratelimit-remaining')).toEqual(['0']);
    proxy.allowance = () => allowed;
    expect((await client.stats()).unary).toBe(before);
  });

  test('within it, the answer says how much is left', async () => {
    proxy.allowance = () => ({ ...allowed, headers: { 'x-ratelimit-remaining': '41' } });
    expect((await client.unary(hello)).head?.get('x-ratelimit-remaining')).toEqual(['41']);
  });

  test('as many calls at once as are allowed', async () => {
    await using small = await startProxy({ backendPort: backend.port, limits: { calls: 2 } });
    using caller = createEchoClient(small.port, { token: TOKEN });
    const answers = await Promise.all(Array.from({ length: 4 }, () => caller.unary(hello, { 'delay-ms': '500' })));
    const codes = answers.map(({ error }) => error?.code ?? status.OK).sort((a, b) => a - b);
    expect(codes).toEqual([status.OK, status.OK, status.UNAVAILABLE, status.UNAVAILABLE]);
    expect((await caller.unary(hello)).error).toBeUndefined();
  });
});

/** Calls that went to no service. */
async function counted(code: string): Promise<number> {
  const text = await proxy.metrics.metrics();
  const lines = text.matchAll(/_grpc_calls_total\{service="",code="(\w+)".*\} (\d+)/g);
  return lines.reduce((sum, [, found, count]) => sum + (found === code ? Number(count) : 0), 0);
}

describe('what every call leaves behind', () => {
  const left = { ...allowed, headers: { 'x-ratelimit-remaining': '7' } };

  test.each([
    ['UNIMPLEMENTED', { ':path': '/nobody.v1.Nothing/Do' }, status.UNIMPLEMENTED],
    ['UNAVAILABLE', { ':path': '/rollcall.test.v1.Echo/Unary', 'rollcall-service': 'nowhere' }, status.UNAVAILABLE],
  ])('%s: what the limit says', async (_what, headers, code) => {
    proxy.allowance = () => left;
    const { head } = await request({ ...headers, authorization: `Bearer ${TOKEN}` });
    expect(head).toMatchObject({ 'grpc-status': String(code), 'x-ratelimit-remaining': '7' });
  });

  test('PERMISSION_DENIED: what the limit says', async () => {
    proxy.allowance = () => left;
    proxy.identity = () => {
      throw new GatewayError('INSUFFICIENT_SCOPE');
    };
    const { error, status: final } = await client.unary(hello);
    expect(error?.code).toBe(status.PERMISSION_DENIED);
    expect(final.metadata.get('x-ratelimit-remaining')).toEqual(['7']);
  });

  test('a call that is given up during admission is counted', async () => {
    const before = await counted('CANCELLED');
    const { promise, resolve } = Promise.withResolvers<typeof allowed>();
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
    proxy.allowance = () => {
      onAsked();
      return promise;
    };
    const { call, answer } = client.startUnary(hello);
    await asked;
    call.cancel();
    expect((await answer).error?.code).toBe(status.CANCELLED);
    await expect.poll(() => gaugeOf(proxy, 'open_calls')).toBe(0);
    resolve(allowed);
    await expect.poll(() => counted('CANCELLED')).toBe(before + 1);
  });

  test('a request that is no call is counted', async () => {
    const before = await counted('UNKNOWN');
    await request({ ':path': '/rollcall.test.v1.Echo/Unary', 'content-type': 'application/json' });
    await request({ ':path': '/rollcall.test.v1.Echo/Unary', ':method': 'GET' });
    expect(await counted('UNKNOWN')).toBe(before + 2);
  });
});

describe('routing', () => {
  test('the caller may name the registration', async () => {
    proxy.registered.set('elsewhere', targetAt('elsewhere', 1));
    expect((await client.unary(hello, { 'rollcall-service': 'elsewhere' })).error?.code).toBe(status.UNAVAILABLE);
    expect((await client.unary(hello, { 'rollcall-service': 'rollcall.test' })).error).toBeUndefined();
    expect((await client.unary(hello, { 'rollcall-service': 'nowhere' })).error?.code).toBe(status.UNAVAILABLE);
  });

  test.each(['服务', 'größe', 'a b%'])('the registration %s is named percent-encoded', async (name) => {
    const target = proxy.registered.get('rollcall.test');
    if (target !== undefined) proxy.registered.set(name, { ...target, service: name });
    const named = { 'rollcall-service': encodeURIComponent(name) };
    expect((await client.unary(hello, named)).error).toBeUndefined();
    proxy.registered.delete(name);
  });

  test.each(['100%', '%zz', '%E6%9C', 'gr\u00f6\u00dfe'])('the name %s is no percent-encoding', async (name) => {
    const headers = { ':path': '/rollcall.test.v1.Echo/Unary', authorization: `Bearer ${TOKEN}` };
    const { head } = await request({ ...headers, 'rollcall-service': name });
    expect(head).toMatchObject({
      'grpc-status': String(status.INVALID_ARGUMENT),
      'grpc-message': expect.stringContaining('percent-encoded'),
    });
  });

  test('a service that nobody registered is UNIMPLEMENTED, one that has gone UNAVAILABLE until it is back', async () => {
    const unknown = await request({ ':path': '/nobody.v1.Nothing/Do', authorization: `Bearer ${TOKEN}` });
    expect(unknown.head['grpc-status']).toBe(String(status.UNIMPLEMENTED));
    const target = proxy.registered.get('rollcall.test');
    expect((await client.unary(hello)).error).toBeUndefined();
    proxy.registered.delete('rollcall.test');
    expect((await client.unary(hello)).error?.code).toBe(status.UNAVAILABLE);
    if (target !== undefined) proxy.registered.set('rollcall.test', target);
    expect((await client.unary(hello)).error).toBeUndefined();
  });

  test('before anything is known of what is registered: UNAVAILABLE', async () => {
    proxy.isKnown = false;
    const { head } = await request({ ':path': '/nobody.v1.Nothing/Do', authorization: `Bearer ${TOKEN}` });
    expect(head['grpc-status']).toBe(String(status.UNAVAILABLE));
  });
});

describe('what is no call of gRPC', () => {
  test.each([
    ['GET', { ':method': 'GET' }, [405, 'METHOD_NOT_ALLOWED']],
    ['JSON', { 'content-type': 'application/json' }, [415, 'UNSUPPORTED_TYPE']],
    ['gRPC-Web', { 'content-type': 'application/grpc-web+proto' }, [415, 'UNSUPPORTED_TYPE']],
    ['gRPC-Web in text', { 'content-type': 'application/grpc-web-text' }, [415, 'UNSUPPORTED_TYPE']],
    ['no content type', { 'content-type': '' }, [415, 'UNSUPPORTED_TYPE']],
  ])('%s is refused with a word and an id', async (_what, headers, [code, error]) => {
    const { head, body } = await request({ ':path': '/rollcall.test.v1.Echo/Unary', ...headers });
    expect(head[':status']).toBe(code);
    expect(head['content-type']).toBe('application/json; charset=utf-8');
    expect(head['x-request-id']).toMatch(/^[0-9a-f]{32}$/);
    expect(JSON.parse(body.toString())).toEqual({
      error: { code: error, message: expect.stringContaining('This port accepts'), details: {} },
    });
  });

  test('the id is the one that the caller gave, and HEAD has no body', async () => {
    const { head, body } = await request({ ':path': '/', ':method': 'HEAD', 'x-request-id': 'mine' });
    expect([head[':status'], head['x-request-id'], body.length]).toEqual([405, 'mine', 0]);
  });

  test.each(['/', '/a', '/a.B/C/D', '/../etc/passwd', '/a.B/C?x', '/a%2eB/C'])('the path %s', async (path) => {
    const { head } = await request({ ':path': path, authorization: `Bearer ${TOKEN}` });
    expect(head['grpc-status']).toBe(String(status.UNIMPLEMENTED));
  });

  test.each(['1s', '123456789S', '-1S', 'soon'])('the timeout %s', async (timeout) => {
    const headers = {
      ':path': '/rollcall.test.v1.Echo/Unary',
      authorization: `Bearer ${TOKEN}`,
      'grpc-timeout': timeout,
    };
    expect((await request(headers)).head['grpc-status']).toBe(String(status.INVALID_ARGUMENT));
  });

  test.each<[string, Record<string, string>, object]>([
    ['another method', { ':method': 'GET' }, { ':status': 429 }],
    ['another type', { 'content-type': 'text/plain' }, { ':status': 429 }],
    ['no path of a call', { ':path': '/' }, { 'grpc-status': String(status.RESOURCE_EXHAUSTED) }],
    ['no timeout', { 'grpc-timeout': 'soon' }, { 'grpc-status': String(status.RESOURCE_EXHAUSTED) }],
  ])('%s counts against the limit of its address', async (_what, headers, answer) => {
    const counted: unknown[] = [];
    proxy.allowance = ({ caller, remoteAddress }) => {
      counted.push([caller, remoteAddress]);
      return limited({});
    };
    expect((await request({ ':path': '/rollcall.test.v1.Echo/Unary', ...headers })).head).toMatchObject(answer);
    expect(counted).toEqual([[undefined, '127.0.0.1']]);
  });

  test('uses no slot of a call, though it is never sent in full', async () => {
    await using small = await startProxy({ backendPort: backend.port, limits: { calls: 10, lingerMs: 60_000 } });
    const session = connect(`http://127.0.0.1:${small.port}`);
    const answered = Array.from({ length: 10 }, async () => {
      const stream = session.request({ ':method': 'POST', ':path': '/x', 'content-type': 'text/plain' });
      stream.on('error', () => undefined).resume();
      await once(stream, 'close');
    });
    await Promise.all(answered);
    using caller = createEchoClient(small.port, { token: TOKEN });
    expect((await caller.unary(hello)).error).toBeUndefined();
    session.destroy();
  });

  test('a timeout that is over at once', async () => {
    const headers = { ':path': '/rollcall.test.v1.Echo/Unary', authorization: `Bearer ${TOKEN}`, 'grpc-timeout': '1n' };
    expect((await request(headers)).head['grpc-status']).toBe(String(status.DEADLINE_EXCEEDED));
  });
});

const path = (method: string) => ({ ':path': `/grpc.health.v1.Health/${method}` });

describe('health of the gateway', () => {
  const serving = Buffer.from([0, 0, 0, 0, 2, 0x08, 1]);

  test('anyone may ask for it', async () => {
    const { body, trailers } = await request(path('Check'), Buffer.alloc(5));
    expect(body).toEqual(serving);
    expect(trailers['grpc-status']).toBe('0');
  });

  test('of other services it knows nothing', async () => {
    const { head } = await request(path('Check'), Buffer.from([0, 0, 0, 0, 6, 0x0a, 4, ...Buffer.from('shop')]));
    expect(head['grpc-status']).toBe(String(status.NOT_FOUND));
  });

  test.each([
    ['a message that is none', Buffer.from([0, 0, 0]), status.INVALID_ARGUMENT],
    ['a megabyte', Buffer.alloc(2 ** 20), status.INVALID_ARGUMENT],
  ])('%s is refused', async (_what, message, code) => {
    expect((await request(path('Check'), message)).head['grpc-status']).toBe(String(code));
  });

  test('is NOT_SERVING while the gateway stops, and nobody watches it', async () => {
    await using stopping = await startProxy({ backendPort: backend.port, drainMs: 1000 });
    const session = connect(`http://127.0.0.1:${stopping.port}`);
    onTestFinished(() => session.destroy());
    const ask = async (method: string): Promise<unknown> => {
      const stream = session.request({ ...path(method), ':method': 'POST', 'content-type': 'application/grpc' });
      stream.end(Buffer.alloc(5));
      const [answer] = await once(stream, method === 'Check' ? 'data' : 'response');
      return answer;
    };
    expect(await ask('Watch')).toMatchObject({ 'grpc-status': String(status.UNIMPLEMENTED) });
    const stopped = stopping.stop();
    expect(await ask('Check')).toEqual(Buffer.from([0, 0, 0, 0, 2, 0x08, 2]));
    session.close();
    await stopped;
  });
});
