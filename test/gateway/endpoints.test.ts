import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RestProxy } from '@rollcall/gateway/doors/rest/rest.ts';
import { defaultBreakerPolicy } from '@rollcall/platform/outbound/breaker.ts';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createEchoClient, startBackend, startProxy, TOKEN, targetAt } from './grpc-fixture.ts';
import { portOf, restFixture, targetNamed } from './rest-fixture.ts';

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
const { serve, newProxy, frontOf } = restFixture(stack);

/** Answers with where it was asked, the body, and the name that it was asked by. */
const answering: (address: string) => RequestListener = (address) => (request, response) => {
  let body = '';
  request.on('data', (chunk: Buffer) => {
    body += chunk.toString();
  });
  request.on('end', () => response.end(JSON.stringify({ address, body, host: request.headers.host })));
};

interface Reply {
  readonly address: string;
  readonly body: string;
  readonly host: string;
}

/** How long names take to be looked up. */
let lookupMs = 0;
/** A server before one service, whose host name leads to these addresses. */
function proxyTo(addresses: () => readonly string[], port: number, proxy?: RestProxy): Promise<string> {
  const resolve = async () => {
    await sleep(lookupMs);
    return addresses().map((address) => ({ address, family: 4 }));
  };
  return frontOf(targetNamed('several.test', port, { resolve }), proxy);
}

const breakOff: RequestListener = ({ socket }) => socket.resetAndDestroy();

/** For half of the first pause, so that no machine is too slow for it. */
async function whileLeftOut(request: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + defaultBreakerPolicy.openMs / 2;
  while (performance.now() < until) await request();
}

describe('a service whose host name leads to several addresses', () => {
  const [A, B, C] = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
  let addresses: readonly string[];
  let broken: ReadonlySet<string>;
  /** Say so, instead of an answer. */
  let overloaded: ReadonlySet<string>;
  let hits: Record<string, number>;
  let port: number;
  let url: string;

  beforeEach(async () => {
    addresses = [A, B, C];
    broken = new Set();
    overloaded = new Set();
    hits = {};
    const listener: (address: string) => RequestListener = (address) => (request, response) => {
      hits[address] = (hits[address] ?? 0) + 1;
      if (broken.has(address)) request.socket.resetAndDestroy();
      else if (overloaded.has(address)) response.writeHead(503).end('overloaded');
      else answering(address)(request, response);
    };
    port = portOf(await serve(A, 0, listener(A)));
    await serve(B, port, listener(B));
    await serve(C, port, listener(C));
    url = await proxyTo(() => addresses, port);
  });

  async function ask(init: RequestInit = {}): Promise<Reply> {
    const answer = await fetch(`${url}/x`, init);
    expect(answer.status).toBe(200);
    return (await answer.json()) as Reply;
  }

  async function untilLeftOut(request: () => Promise<unknown>): Promise<void> {
    while ((hits[B] ?? 0) < defaultBreakerPolicy.consecutiveFailures) await request();
  }

  test('gets requests at all of them, by its name', async () => {
    const replies: Reply[] = [];
    for (let count = 0; count < 60; count += 1) replies.push(await ask());
    expect(Object.keys(hits).toSorted()).toEqual([A, B, C]);
    for (const { host } of replies) expect(host).toMatch(/^several\.test:\d+$/);
  });

  test('loses none that may be repeated by one that breaks connections, which is left out, and used again when it is well', async () => {
    broken = new Set([B]);
    await untilLeftOut(() => ask());
    await whileLeftOut(() => ask());
    expect(hits[B]).toBe(defaultBreakerPolicy.consecutiveFailures);
    broken = new Set();
    await new Promise((resolve) => {
      setTimeout(resolve, defaultBreakerPolicy.openMs);
    });
    for (let count = 0; count < 90; count += 1) await ask();
    expect(hits[B]).toBeGreaterThanOrEqual(defaultBreakerPolicy.consecutiveFailures + 8);
  });

  test('loses not even an upload by one that accepts no connections', async () => {
    addresses = [A, '127.0.0.5'];
    const body = 'x'.repeat(200_000);
    for (let count = 0; count < 20; count += 1) {
      const reply = await ask({
        method: 'POST',
        body: count % 2 === 0 ? body : new Blob([body]).stream(),
        duplex: 'half',
      });
      expect(reply).toMatchObject({ address: A, body });
    }
  });

  test.each([
    ['while its name is looked up', 200, () => [A, B]],
    ['between two attempts', 0, () => ['127.0.0.5', '127.0.0.6']],
  ])('an upload that its caller breaks off %s costs nobody else anything', async (_when, ms, leadingTo) => {
    lookupMs = ms;
    const front = await proxyTo(leadingTo, port);
    for (const afterMs of [1, 10, 20, 30, 45, 60]) {
      const caller = connect({ port: Number(new URL(front).port), host: '127.0.0.1' });
      caller.write('POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc');
      await sleep(afterMs);
      caller.resetAndDestroy();
    }
    lookupMs = 0;
    await sleep(300);
    expect(await ask()).toMatchObject({ host: expect.any(String) });
  });

  test('is not asked twice for what may have been done', async () => {
    broken = new Set([A, B, C]);
    expect((await fetch(url, { method: 'POST', body: 'pay' })).status).toBe(502);
    expect(Object.values(hits)).toEqual([1]);
  });

  test('has retries of its own, which others cannot use up', async () => {
    const down = [A, B, C, '127.0.0.5'];
    const downPort = portOf(await serve(A, 0, breakOff));
    for (const address of down.slice(1)) await serve(address, downPort, breakOff);
    const proxy = newProxy();
    const failing = await proxyTo(() => down, downPort, proxy);
    const healthy = await proxyTo(() => addresses, port, proxy);
    for (let count = 0; count < 12; count += 1) expect((await fetch(failing)).ok).toBe(false);
    broken = new Set([A]);
    for (let count = 0; count < 6; count += 1) expect((await fetch(healthy)).status).toBe(200);
  });

  test('is out only when all of them are', async () => {
    broken = new Set([A, B, C]);
    const statuses = [];
    for (let count = 0; count < 16; count += 1) statuses.push((await fetch(url, { method: 'POST', body: 'x' })).status);
    expect(statuses).toEqual([...Array.from({ length: 15 }, () => 502), 503]);
  });

  test('is asked less where one says that it is overloaded, which is left out', async () => {
    overloaded = new Set([B]);
    await untilLeftOut(() => fetch(url));
    await whileLeftOut(async () => expect((await fetch(url)).status).toBe(200));
    expect(hits[B]).toBe(defaultBreakerPolicy.consecutiveFailures);
  });

  test.each([
    ['all', () => [A, B, C]],
    ['all that accept connections', () => [A, '127.0.0.5']],
  ])('is asked on where %s say that they are overloaded', async (_which, leadingTo) => {
    const front = await proxyTo(leadingTo, port);
    // Until one that takes no connections is left out.
    for (let count = 0; count < 50; count += 1) expect((await fetch(front)).status).toBe(200);
    hits = {};
    overloaded = new Set([A, B, C]);
    for (let count = 0; count < 30; count += 1) expect(await (await fetch(front)).text()).toBe('overloaded');
    expect(Object.values(hits).reduce((sum, each) => sum + each)).toBe(30);
    overloaded = new Set();
    for (let count = 0; count < 10; count += 1) expect((await fetch(front)).status).toBe(200);
  });

  test('is followed to other addresses', async () => {
    addresses = [A, B];
    for (let count = 0; count < 4; count += 1) await ask();
    // As when pods have gone: nobody accepts connections there.
    addresses = ['127.0.0.6', C];
    const until = Date.now() + 10_000;
    while (hits[C] === undefined && Date.now() < until) {
      await ask();
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
    }
    expect(hits[C]).toBeGreaterThan(0);
    for (let count = 0; count < 10; count += 1) expect((await ask()).address).toBe(C);
  });
});

test('gRPC calls go past an address that accepts no connections', async () => {
  const backend = stack.use(await startBackend());
  const proxy = stack.use(await startProxy({ backendPort: backend.port }));
  proxy.registered.set('rollcall.test', targetAt('rollcall.test', backend.port, ['127.0.0.1', '127.0.0.7']));
  using client = createEchoClient(proxy.port, { token: TOKEN });
  for (let count = 0; count < 20; count += 1) {
    const { message, error } = await client.unary(Buffer.from(`call ${count}`));
    expect(error).toBeUndefined();
    expect(message?.toString()).toBe(`call ${count}`);
  }
});
