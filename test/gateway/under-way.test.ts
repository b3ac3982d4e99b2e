import type { RequestListener, ServerResponse } from 'node:http';
import { afterAll, expect, test, vi } from 'vitest';
import { MOST_UNDER_WAY, portOf, restFixture, targetNamed } from './rest-fixture.ts';

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
const { serve, newProxy, frontOf } = restFixture(stack);

/** Answers, but for streams, which it leaves open. */
function streaming(streams: Set<ServerResponse>): RequestListener {
  return (request, response) => {
    if (request.url !== '/stream') {
      response.end('fine');
      return;
    }
    streams.add(response);
    response.once('close', () => streams.delete(response));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
  };
}

const HERE = { resolve: async () => [{ address: '127.0.0.1', family: 4 }] };

test('streams of a service keep nobody from another that is registered for the same origin', async () => {
  const port = portOf(await serve('127.0.0.1', 0, streaming(new Set())));
  const proxy = newProxy();
  const one = await frontOf(targetNamed('127.0.0.1', port, HERE), proxy);
  const two = await frontOf(targetNamed('127.0.0.1', port, HERE), proxy);
  const held = await Promise.all(Array.from({ length: MOST_UNDER_WAY }, () => fetch(`${one}/stream`)));
  expect(held.map(({ status }) => status)).toEqual(Array.from({ length: MOST_UNDER_WAY }, () => 200));
  expect((await fetch(two)).status).toBe(200);
});

test('an address gets as many requests as it may have at once, and the next when one of them is over', async () => {
  const streams = new Set<ServerResponse>();
  const port = portOf(await serve('127.0.0.1', 0, streaming(streams)));
  const url = await frontOf(targetNamed('127.0.0.1', port, HERE));
  const held = await Promise.all(Array.from({ length: MOST_UNDER_WAY }, () => fetch(`${url}/stream`)));
  expect(held.map(({ status }) => status)).toEqual(Array.from({ length: MOST_UNDER_WAY }, () => 200));
  const refused = await fetch(url);
  expect(refused.status).toBe(503);
  expect(await refused.text()).toContain('as many requests under way');
  const [stream] = streams;
  stream?.end();
  await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200), { timeout: 30_000 });
});

test('a connection to a service is not kept for longer than a service that stops keeps it', async () => {
  const server = await serve('127.0.0.1', 0, streaming(new Set()));
  server.keepAliveTimeout = 95_000;
  const left = new Promise<void>((resolve) => {
    server.once('connection', (socket) => socket.once('end', resolve));
  });
  const url = await frontOf(targetNamed('127.0.0.1', portOf(server), HERE));
  expect((await fetch(url)).status).toBe(200);
  const answeredAt = performance.now();
  await left;
  expect(performance.now() - answeredAt).toBeLessThan(30_000);
});
