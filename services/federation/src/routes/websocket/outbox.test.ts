import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Outbox } from './outbox.ts';

const TEXT = 'x'.repeat(1_000_000);
const WAIT = { timeout: 30_000 };

async function start(all = { characters: 0 }) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => server.close());
  await once(server, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => client.terminate());
  const [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'open')]);
  return { client, all, outbox: new Outbox(socket as WebSocket, all, 0) };
}

test('who does not read much that waits is stuck, until it reads', async () => {
  const { client, all, outbox } = await start();
  client.pause();
  for (let times = 0; times < 40; times += 1) outbox.send(TEXT);
  expect([outbox.isFull, outbox.isStuck(0)]).toEqual([false, false]);
  let nowMs = 0;
  // The system takes some of it.
  await expect
    .poll(() => {
      nowMs += 21_000;
      return outbox.isStuck(nowMs);
    }, WAIT)
    .toBe(true);
  client.resume();
  await expect.poll(() => all.characters, WAIT).toBe(0);
  expect([outbox.isStuck(nowMs + 30_000), outbox.sentFrames]).toEqual([false, 40]);
});

test('for one client, and for all together, so much may wait', async () => {
  const { client, all, outbox } = await start();
  client.pause();
  for (let times = 0; times < 100; times += 1) outbox.send(TEXT);
  expect(outbox.isFull).toBe(true);
  const closed = once(client, 'close');
  client.terminate();
  await closed;
  await expect.poll(() => all.characters, WAIT).toBe(0);
  const other = await start({ characters: 300_000_000 });
  other.client.pause();
  other.outbox.send('x');
  expect(other.outbox.isFull).toBe(false);
  other.outbox.send(TEXT.repeat(2));
  expect(other.outbox.isFull).toBe(true);
});
