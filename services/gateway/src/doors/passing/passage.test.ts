import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@rollcall/platform/clock.ts';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { Verdict } from '../../admission/limits.ts';
import { GatewayError } from '../../errors.ts';
import { Passage } from './passage.ts';

const PROTOCOL = 'graphql-transport-ws';
const LET_IN: Verdict = { headers: {}, refusal: undefined };
const REFUSED: Verdict = { headers: {}, refusal: new GatewayError('RATE_LIMITED', { details: { limit: 1 } }) };

/** A connection of this process, seen from both ends. */
async function connect(protocol: string) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => server.close());
  await once(server, 'listening');
  const near = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, protocol);
  const [[far]] = await Promise.all([once(server, 'connection'), once(near, 'open')]);
  onTestFinished(() => near.terminate());
  return { near, far: far as WebSocket };
}

function textsOf(socket: WebSocket): string[] {
  const texts: string[] = [];
  socket.on('message', (data: Buffer) => texts.push(data.toString()));
  return texts;
}

/** @param count what becomes of each operation. */
async function pass(count: () => Verdict | Promise<Verdict>, protocol = PROTOCOL) {
  const outside = await connect(protocol);
  const inside = await connect(protocol);
  void new Passage({
    client: outside.far,
    service: inside.near,
    holder: undefined,
    stillHolds: () => true,
    count,
    clock: systemClock,
    awakeMs: 0,
  });
  return { client: outside.near, got: textsOf(inside.far), told: textsOf(outside.near) };
}

const subscribe = (id: string) => JSON.stringify({ type: 'subscribe', id, payload: { query: '{ a }' } });

test.each(['at once', 'later'])('operations are counted %s, and messages keep their order', async (when) => {
  let left = 2;
  const { client, got, told } = await pass(() => {
    left -= 1;
    const verdict = left >= 0 ? LET_IN : REFUSED;
    return when === 'at once' ? verdict : new Promise((resolve) => setTimeout(() => resolve(verdict), 20));
  });
  const sent = ['{"type":"connection_init"}', subscribe('1'), '{"type":"ping"}', subscribe('2'), subscribe('3')];
  for (const text of [...sent, '{"type":"complete","id":"1"}']) client.send(text);
  await expect.poll(() => got).toEqual([...sent.slice(0, 4), '{"type":"complete","id":"1"}']);
  await expect.poll(() => told).toHaveLength(1);
  expect(JSON.parse(told[0] ?? '')).toEqual({
    id: '3',
    type: 'error',
    payload: [{ message: expect.any(String), extensions: { code: 'RATE_LIMITED', details: { limit: 1 } } }],
  });
});

test('what services may read as an operation is one', async () => {
  const { client, got, told } = await pass(() => REFUSED);
  const hidden = ['{"type":"subscribe","type":"ping"}', '{"type":"ping","id":"1","type":"start"}', '{', '[]', '"a"'];
  for (const text of hidden) client.send(text);
  client.send(Buffer.from(subscribe('1')));
  await expect.poll(() => told).toHaveLength(5);
  // It comes over another connection.
  await expect.poll(() => got).toEqual(['{"type":"ping"}']);
});

test('older clients are told in their way', async () => {
  const { client, told } = await pass(() => REFUSED, 'graphql-ws');
  client.send('{"type":"start","id":"7"}');
  await expect.poll(() => told).toHaveLength(1);
  expect(JSON.parse(told[0] ?? '')).toMatchObject({ id: '7', payload: { extensions: { code: 'RATE_LIMITED' } } });
});

test('messages of other protocols are no operations', async () => {
  const { client, got } = await pass(() => REFUSED, 'chat');
  client.send(subscribe('1'));
  await expect.poll(() => got).toEqual([subscribe('1')]);
});
