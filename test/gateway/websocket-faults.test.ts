import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelSource, Subscriber } from '@rollcall/gateway/doors/websocket/channels/channel-source.ts';
import { encodeEvent } from '@rollcall/gateway/doors/websocket/protocol.ts';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { clientOf, connect, isSynced, refusalOf } from './websocket-client.ts';
import { startWebSocketGateway } from './websocket-gateway.ts';

/** A channel `news` in which a test sends what it likes. */
function newsSource(backlog: readonly Buffer[] = []) {
  const subscribers = new Set<Subscriber>();
  const source: ChannelSource = {
    channels: [{ address: 'news', summary: 'News', scope: 'news:read', payload: {} }],
    serves: (channel) => channel.startsWith('news'),
    scopeFor: () => 'news:read',
    subscribe(_subscription, subscriber) {
      subscribers.add(subscriber);
      const synced = encodeEvent({ channel: 'news', cursor: '0', payload: { type: 'synced' } });
      subscriber.begin({ isReset: false, frames: [...backlog, synced] });
      return () => subscribers.delete(subscriber);
    },
  };
  const publish = (number: number, text = '') => {
    const frame = encodeEvent({ channel: 'news', cursor: `${number}`, payload: { type: 'published', number, text } });
    for (const subscriber of subscribers) subscriber.next(frame);
  };
  return { source, subscribers: () => subscribers.size, publish };
}

/** A WebSocket handshake by hand, after which nothing is read or answered. */
async function connectMute(port: number, token: string): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1');
  const fields = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  socket.write(`GET /api/ws HTTP/1.1\r\n${fields}${key}Authorization: Bearer ${token}\r\n\r\n`);
  await once(socket, 'readable');
  socket.on('error', () => undefined);
  return socket;
}

/** A text frame of a client with a mask of zeros. */
function maskedFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

/** Follows the channel without reading anything. */
async function followMute(port: number): Promise<Socket> {
  const socket = await connectMute(port, 't');
  socket.write(maskedFrame('{"type":"subscribe","channel":"news"}'));
  return socket;
}

describe('bad messages', () => {
  test('garbage is answered with an error, and the connection goes on', async () => {
    await using gateway = await startWebSocketGateway();
    gateway.admit('t');
    await using client = await connect(gateway.url, 't');
    const deep = '['.repeat(3000) + ']'.repeat(3000);
    const garbage = ['', 'hello', '\u0000', '{"type":"subscribe"}', '{"type":"x","id":"7"}', deep, `{"a":${deep}}`];
    for (const text of garbage) {
      client.socket.send(text);
      expect(await client.next()).toMatchObject({ type: 'error', payload: { code: 'INVALID_MESSAGE' } });
    }
    client.send({ type: 'subscribe', id: '9', channel: 'weather' });
    expect(await client.next()).toMatchObject({ type: 'error', id: '9', payload: { code: 'UNKNOWN_CHANNEL' } });
    client.send({ type: 'ping', id: '10' });
    expect(await client.next()).toEqual({ type: 'pong', id: '10' });
  });

  test.each([
    [1003, 'a binary frame', (socket: WebSocket) => socket.send(Buffer.from('{"type":"ping"}'), { binary: true })],
    [1009, 'a frame over the limit', (socket: WebSocket) => socket.send('x'.repeat(8 * 1024 + 1))],
    [
      1009,
      'fragments that are together over the limit',
      (socket: WebSocket) => {
        for (let part = 0; part < 3; part += 1) socket.send('x'.repeat(3 * 1024), { fin: part === 2 });
      },
    ],
    [
      1008,
      'a message in more fragments than any client needs',
      (socket: WebSocket) => {
        for (let part = 0; part < 5; part += 1) socket.send('x', { fin: part === 4 });
      },
    ],
    [
      1008,
      'more messages than allowed',
      (socket: WebSocket) => {
        for (let sent = 0; sent < 200; sent += 1) socket.send('{"type":"ping"}');
      },
    ],
    [
      1008,
      'more ping frames than allowed',
      (socket: WebSocket) => {
        for (let sent = 0; sent < 200; sent += 1) socket.ping();
      },
    ],
    [
      1008,
      'more pong frames that nobody asked for than allowed',
      (socket: WebSocket) => {
        for (let sent = 0; sent < 200; sent += 1) socket.pong();
      },
    ],
    [1007, 'text that is no UTF-8', (socket: WebSocket) => socket.send(Buffer.from([0xc3, 0x28]), { binary: false })],
  ])('%i for %s; others do not notice', async (code, _what, misbehave) => {
    await using gateway = await startWebSocketGateway();
    gateway.admit('t');
    await using other = await connect(gateway.url, 't');
    await using client = await connect(gateway.url, 't');
    misbehave(client.socket);
    expect(await client.closed).toMatchObject({ code });
    other.send({ type: 'ping' });
    expect(await other.next()).toEqual({ type: 'pong' });
  });

  test('8 KiB are within the limit, and so are a few fragments', async () => {
    await using gateway = await startWebSocketGateway();
    gateway.admit('t');
    await using client = await connect(gateway.url, 't');
    client.socket.send('x'.repeat(8 * 1024));
    expect(await client.next()).toMatchObject({ payload: { code: 'INVALID_MESSAGE' } });
    for (const [part, text] of ['{"type"', ':', '"ping', '"}'].entries()) client.socket.send(text, { fin: part === 3 });
    expect(await client.next()).toEqual({ type: 'pong' });
  });

  test('1008 for a frame that comes byte by byte, for each byte costs as much as a small message', async () => {
    // Bytes come seldom where the machine is busy.
    await using gateway = await startWebSocketGateway({ limits: { messageRate: { perSecond: 1, burst: 40 } } });
    gateway.admit('t');
    const socket = await connectMute(gateway.port, 't');
    socket.setNoDelay(true);
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    // 1,000 bytes are to come.
    socket.write(Buffer.from([0x81, 0xfe, 0x03, 0xe8, 0, 0, 0, 0]));
    let sent = 0;
    for (; sent < 900 && !socket.readableEnded && !socket.destroyed; sent += 1) {
      socket.write('x');
      await sleep(2);
    }
    expect(sent).toBeLessThan(900);
    // A close frame with its code.
    expect(Buffer.concat(received).indexOf(Buffer.from([0x88, 0x02, 0x03, 0xf0]))).toBeGreaterThan(0);
  });

  test('a small message may come in pieces', async () => {
    await using gateway = await startWebSocketGateway();
    gateway.admit('t');
    const socket = await connectMute(gateway.port, 't');
    socket.setNoDelay(true);
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    for (const byte of maskedFrame('{"type":"ping"}')) {
      socket.write(Buffer.from([byte]));
      await sleep(2);
    }
    await expect.poll(() => received).toContain('"pong"');
    socket.destroy();
  });

  test('an unmasked frame, which no client may send, ends the connection', async () => {
    await using gateway = await startWebSocketGateway();
    gateway.admit('t');
    const socket = await connectMute(gateway.port, 't');
    const ended = once(socket, 'end');
    socket.resume();
    socket.write(Buffer.from([0x81, 0x02, 0x7b, 0x7d]));
    expect(await ended).toEqual([]);
  });
});

describe('subscriptions', () => {
  test('a scope for each source, and * for all', async () => {
    const { source } = newsSource();
    await using gateway = await startWebSocketGateway({ sources: [source] });
    gateway.admit('news', { scopes: new Set(['news:read']) });
    gateway.admit('jobs', { scopes: new Set(['jobs:read', 'registrations:read']) });
    await using news = await connect(gateway.url, 'news');
    await using jobs = await connect(gateway.url, 'jobs');
    for (const [client, allowed] of [
      [news, ['news']],
      [jobs, ['registrations', 'jobs', 'jobs.shop']],
    ] as const) {
      for (const channel of ['news', 'registrations', 'jobs', 'jobs.shop']) {
        client.send({ type: 'subscribe', id: channel, channel });
        const answer = (await client.until(({ id }) => id === channel)).at(-1);
        const isAllowed = allowed.some((each) => each === channel);
        const [source = ''] = channel.split('.');
        const refusal = { code: 'INSUFFICIENT_SCOPE', message: `The token lacks the scope ${source}:read` };
        expect(answer).toMatchObject(isAllowed ? { type: 'subscribed' } : { type: 'error', payload: refusal });
      }
    }
  });

  test('so many a connection, and no more after unsubscribing', async () => {
    const { source, publish, subscribers } = newsSource();
    await using gateway = await startWebSocketGateway({ sources: [source], limits: { subscriptions: 2 } });
    gateway.admit('t');
    await using client = await connect(gateway.url, 't');
    for (const channel of ['news.1', 'news.2']) {
      client.send({ type: 'subscribe', channel });
      await client.until(isSynced);
    }
    client.send({ type: 'subscribe', channel: 'news.3' });
    expect(await client.next()).toMatchObject({ payload: { code: 'TOO_MANY_SUBSCRIPTIONS' } });
    client.send({ type: 'unsubscribe', channel: 'news.1' });
    expect(await client.next()).toMatchObject({ type: 'unsubscribed' });
    publish(1);
    expect(await client.next()).toMatchObject({ type: 'event', id: '1' });
    expect(subscribers()).toBe(1);
    expect(await gateway.metric('rollcall_gateway_websocket_subscriptions')).toBe(1);
    await client[Symbol.asyncDispose]();
    await expect.poll(subscribers).toBe(0);
    expect(await gateway.metric('rollcall_gateway_websocket_subscriptions')).toBe(0);
  });
});

describe('slow consumers', () => {
  test('one that does not read is closed with 1013; the others get everything', async () => {
    const { source, publish, subscribers } = newsSource();
    const limits = { bufferBytes: 256 * 1024 };
    await using gateway = await startWebSocketGateway({ sources: [source], limits });
    gateway.admit('t');
    await using slow = await connect(gateway.url, 't');
    await using quick = await connect(gateway.url, 't');
    for (const client of [slow, quick]) {
      client.send({ type: 'subscribe', channel: 'news' });
      await client.until(isSynced);
    }
    slow.socket.pause();
    const text = 'x'.repeat(50_000);
    let published = 0;
    // The kernel takes some megabytes before anything waits here.
    while (subscribers() === 2 && published < 2000) {
      published += 1;
      publish(published, text);
      expect(await quick.next()).toMatchObject({ id: `${published}`, payload: { text } });
    }
    expect(subscribers()).toBe(1);
    expect(await gateway.metric('rollcall_gateway_websocket_slow_consumers_closed_total')).toBe(1);
    publish(published + 1);
    expect(await quick.next()).toMatchObject({ id: `${published + 1}` });
    slow.socket.resume();
    const { code, reason } = await slow.closed;
    expect({ code, reason }).toEqual({ code: 1013, reason: 'more than 262144 bytes wait to be read' });
  });

  test('nobody is slow because there is much to begin with, and it comes in order', async () => {
    const backlog = Array.from({ length: 2000 }, (_, number) =>
      encodeEvent({ channel: 'news', cursor: undefined, payload: { type: 'added', number, text: 'x'.repeat(5000) } }),
    );
    const { source, publish } = newsSource(backlog);
    await using gateway = await startWebSocketGateway({ sources: [source], limits: { bufferBytes: 64 * 1024 } });
    gateway.admit('t');
    await using client = await connect(gateway.url, 't');
    client.send({ type: 'subscribe', channel: 'news' });
    expect(await client.next()).toMatchObject({ type: 'subscribed' });
    publish(1);
    const messages = await client.until(({ id }) => id === '1');
    const numbers = messages.map(({ payload }) => payload?.['number']);
    expect(numbers).toEqual([...backlog.keys(), undefined, 1]);
  });
});

describe('a backlog that is not read', () => {
  const backlog = Array.from({ length: 6000 }, () =>
    encodeEvent({ channel: 'news', cursor: undefined, payload: { type: 'added', text: 'x'.repeat(10_000) } }),
  );
  const limits = { heartbeatMs: 1500, tokenCheckMs: 100 };

  test('is let go of with who does not read it, whatever that sends', async () => {
    const { source, subscribers } = newsSource(backlog);
    await using gateway = await startWebSocketGateway({ sources: [source], limits });
    gateway.admit('t');
    const mute = await followMute(gateway.port);
    const sending = setInterval(() => {
      mute.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
      mute.write(maskedFrame('{"type":"ping"}'));
    }, 300);
    await expect.poll(subscribers).toBe(1);
    await expect.poll(subscribers, { timeout: 15_000 }).toBe(0);
    expect(await gateway.metric('rollcall_gateway_websocket_connections')).toBe(0);
    clearInterval(sending);
    mute.destroy();
  });

  test('is kept for who reads it slowly, though the answer to the ping behind it has to wait', async () => {
    const { source, subscribers } = newsSource(backlog);
    await using gateway = await startWebSocketGateway({ sources: [source], limits });
    gateway.admit('t');
    const slow = await followMute(gateway.port);
    await expect.poll(subscribers).toBe(1);
    const reading = setInterval(() => slow.read(), 10);
    await sleep(5 * limits.heartbeatMs);
    expect(subscribers()).toBe(1);
    clearInterval(reading);
    await expect.poll(subscribers, { timeout: 15_000 }).toBe(0);
    slow.destroy();
  });
});

describe('the end of a connection', () => {
  test('4401 when the token is revoked, soon; others stay', async () => {
    await using gateway = await startWebSocketGateway();
    gateway.admit('revoked');
    gateway.admit('kept');
    await using client = await connect(gateway.url, 'revoked');
    await using other = await connect(gateway.url, 'kept');
    gateway.revoke('revoked');
    const revokedAt = performance.now();
    expect(await client.closed).toEqual({ code: 4401, reason: 'the token no longer holds' });
    expect(performance.now() - revokedAt).toBeLessThan(10_000);
    other.send({ type: 'ping' });
    expect(await other.next()).toEqual({ type: 'pong' });
    expect(await refusalOf(gateway.url, { headers: { authorization: 'Bearer revoked' } })).toMatchObject({
      status: 401,
    });
  });

  test('4401 when the token expires, and not before', async () => {
    await using gateway = await startWebSocketGateway();
    const expiresAtMs = Date.now() + 1500;
    gateway.admit('t', { expiresAtMs });
    await using client = await connect(gateway.url, 't');
    expect(await client.closed).toEqual({ code: 4401, reason: 'the token has expired' });
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs);
  });

  test('a peer that answers no ping is cut off; one that answers stays', async () => {
    await using gateway = await startWebSocketGateway({ limits: { heartbeatMs: 1500, tokenCheckMs: 100 } });
    gateway.admit('t');
    const mute = await connectMute(gateway.port, 't');
    mute.write(maskedFrame('{"type":"ping"}'));
    mute.resume();
    await using live = await connect(gateway.url, 't');
    const pinged = once(live.socket, 'ping');
    await once(mute, 'close');
    await pinged;
    live.send({ type: 'ping' });
    expect(await live.next()).toEqual({ type: 'pong' });
    expect(await gateway.metric('rollcall_gateway_websocket_connections')).toBe(1);
  });

  test('a replica that stops says goodbye, accepts nobody, and waits for nobody longer than it has to', async () => {
    await using gateway = await startWebSocketGateway({ limits: { closeTimeoutMs: 1000 } });
    gateway.admit('t');
    const client = await connect(gateway.url, 't');
    // It neither reads nor answers.
    const mute = await connectMute(gateway.port, 't');
    const startedAt = performance.now();
    const closing = gateway.endpoint.close();
    expect(await client.next()).toMatchObject({
      type: 'goodbye',
      payload: { reason: 'this replica stops', retry_after_ms: expect.any(Number) },
    });
    expect(await client.closed).toEqual({ code: 1001, reason: 'this replica stops' });
    const refused = clientOf(new WebSocket(gateway.url, { headers: { authorization: 'Bearer t' } }));
    expect((await refused.closed).code).toBe(1006);
    expect(await refusalOf(gateway.url, { headers: { authorization: 'Bearer t' } })).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
    });
    await closing;
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThan(900);
    expect(tookMs).toBeLessThan(20_000);
    await expect.poll(() => gateway.metric('rollcall_gateway_websocket_connections')).toBe(0);
    mute.destroy();
  });

  test('stopping without clients takes no time', async () => {
    const gateway = await startWebSocketGateway();
    const startedAt = performance.now();
    await gateway[Symbol.asyncDispose]();
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});
