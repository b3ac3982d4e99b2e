import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { fastify } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { createEventStreams, type EventStream } from './event-streams.ts';

const KIB = 'x'.repeat(1024);

/** A server that hands over each stream that is opened. */
async function startServer(mostWaitingBytes: number) {
  const streams = createEventStreams({
    admit: () => () => undefined,
    stopping: () => new Error('It stops'),
    mostWaitingBytes,
  });
  const opened = Promise.withResolvers<EventStream>();
  const app = fastify({ forceCloseConnections: true });
  app.get('/', (_request, reply) => {
    const stream = streams.open(reply);
    if (stream !== undefined) opened.resolve(stream);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => app.close());
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  client.on('error', () => undefined);
  client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  return { client, stream: await opened.promise, streams };
}

test('a subscriber that does not read is cut off once as much waits as may', async () => {
  const { client, stream, streams } = await startServer(1024 * 1024);
  client.pause();
  // What the system keeps for who does not read differs from machine to machine.
  await expect
    .poll(() => {
      for (let times = 0; times < 1024; times += 1) stream.write(`data: ${KIB}\n\n`);
      return streams.size;
    })
    .toBe(0);
});

test('one event may be larger, and what ends the stream comes after it', async () => {
  const { client, stream } = await startServer(1024);
  const answer = text(client);
  stream.write(`data: ${KIB.repeat(8192)}\n\n`);
  stream.end('event: complete\ndata:\n\n');
  const received = await answer;
  expect(received).toContain('event: complete\ndata:\n\n');
  expect(received.length).toBeGreaterThan(8192 * 1024);
});
