import { once } from 'node:events';
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream, type Settings } from 'node:http2';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { waitUntil } from '@rollcall/local/wait.ts';
import { array, assert, asyncProperty, boolean, constantFrom, integer, record } from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { begin, bodyOf, connectHttp2, type Exchange, type TestConnection } from './http2-fixture.ts';

const WAIT = { timeoutMs: 10_000 };
const COMPLETE = { cause: 'complete', code: constants.NGHTTP2_NO_ERROR, mayBeTaken: true };

type OnStream = (stream: ServerHttp2Stream, raw: readonly string[]) => void;

/** A real server: Node's. */
async function serve(onStream: OnStream, settings: Settings = {}) {
  const server = createServer({ settings, maxSessionMemory: 1000 });
  server.on('stream', (stream: ServerHttp2Stream, ...[, , raw]: [unknown, unknown, readonly string[]]) => {
    stream.on('error', () => undefined);
    onStream(stream, raw);
  });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => {
    session.on('error', () => undefined);
    sessions.push(session);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sessions };
}

/** Sends back what comes, and tells of it in the trailers. */
const echo: OnStream = (stream) => {
  let bytes = 0;
  stream.respond({ ':status': 200 }, { waitForTrailers: true });
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  stream.on('wantTrailers', () => stream.sendTrailers({ bytes: String(bytes) }));
  stream.pipe(stream);
};

async function connectTo(port: number): Promise<TestConnection> {
  const test = await connectHttp2(port);
  await test.ready;
  return test;
}

/** Writes a message in pieces, as fast as it is taken. */
async function send({ stream }: Exchange, pieces: readonly Buffer[], exchange: Exchange): Promise<void> {
  for (const piece of pieces) {
    const drains = exchange.drains;
    if (stream.write(piece)) continue;
    await waitUntil('it is taken', async () => exchange.drains > drains, { ...WAIT, intervalMs: 1 });
  }
  stream.end();
}

/** Between the two, everything comes in pieces of other sizes. */
async function choppyTo(port: number, pieceBytes: number): Promise<number> {
  const relay = createTcpServer((socket) => {
    const onward = connectTcp({ port, host: '127.0.0.1', noDelay: true });
    socket.pipe(onward);
    onward.on('data', (chunk: Buffer) => {
      for (let start = 0; start < chunk.length; start += pieceBytes)
        socket.write(chunk.subarray(start, start + pieceBytes));
    });
    for (const [one, other] of [[socket, onward] as const, [onward, socket] as const]) {
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  onTestFinished(() => void relay.close());
  return (relay.address() as AddressInfo).port;
}

test('messages of all sizes, at once, come back as they went, whatever windows, frames and places the server gives', async () => {
  const message = record({ pieces: array(integer({ min: 0, max: 40_000 }), { maxLength: 5 }), isQuick: boolean() });
  const settings = record({
    initialWindowSize: constantFrom(1000, 65_535, 200_000),
    maxConcurrentStreams: constantFrom(1, 3, 100),
    maxFrameSize: constantFrom(16_384, 100_000),
    headerTableSize: constantFrom(0, 100, 4096),
  });
  await assert(
    asyncProperty(
      array(message, { minLength: 1, maxLength: 10 }),
      settings,
      constantFrom(97, 1500, 20_000),
      async (messages, settings, piece) => {
        const { port } = await serve(echo, settings);
        const { connection } = await connectTo(await choppyTo(port, piece));
        const done = messages.map(async ({ pieces, isQuick }) => {
          const sent = pieces.map((bytes, index) => Buffer.alloc(bytes, index + 1));
          const exchange = begin(connection, { headers: ['x-pieces', String(pieces.length)] });
          if (isQuick) {
            for (const one of sent) exchange.stream.write(one);
            exchange.stream.end();
          } else await send(exchange, sent, exchange);
          expect(await exchange.ended).toEqual(COMPLETE);
          expect(bodyOf(exchange).equals(Buffer.concat(sent))).toBe(true);
          expect(exchange.trailers).toEqual(['bytes', String(Buffer.concat(sent).length)]);
        });
        await Promise.all(done);
        connection.close();
      },
    ),
    { numRuns: 10 },
  );
});

test('heads larger than a frame, both ways', async () => {
  const large = 'x'.repeat(30_000);
  let came: readonly string[] = [];
  const { port } = await serve(
    (stream, raw) => {
      came = raw;
      stream.respond({ ':status': 200, large }, { endStream: true });
    },
    { maxHeaderListSize: 100_000 },
  );
  const { connection } = await connectTo(port);
  const exchange = begin(connection, { headers: ['large', large] });
  exchange.stream.end();
  expect(await exchange.ended).toEqual(COMPLETE);
  expect(came).toContain(large);
  expect(exchange.head).toContain(large);
});

test('an answer that is nothing but a head, after others that only say that it takes long', async () => {
  const { port } = await serve((stream) => {
    stream.additionalHeaders({ ':status': 103, link: '</style.css>' });
    stream.respond({ ':status': 204, 'x-a': 'b' }, { endStream: true });
  });
  const { connection } = await connectTo(port);
  const exchange = begin(connection);
  exchange.stream.end();
  expect(await exchange.ended).toEqual(COMPLETE);
  expect(exchange.head?.slice(0, 4)).toEqual([':status', '204', 'x-a', 'b']);
});

test('a server that does not read: so much is taken, and the rest when it reads', async () => {
  const streams: ServerHttp2Stream[] = [];
  const { port } = await serve((stream) => {
    stream.pause();
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ done: 'yes' }));
    streams.push(stream);
  });
  const { connection } = await connectTo(port);
  const exchange = begin(connection);
  const pieces = Array.from({ length: 100 }, () => Buffer.alloc(10_000, 'x'));
  let written = 0;
  while (written < pieces.length && exchange.stream.write(pieces[written] ?? Buffer.alloc(0))) written += 1;
  await waitUntil('the server has it', async () => streams.length === 1, WAIT);
  await new Promise((done) => setTimeout(done, 200));
  expect(written * 10_000).toBeLessThan(200_000);
  expect(exchange.stream.unsentBytes).toBeLessThan(40_000);
  let read = 0;
  streams[0]?.on('data', (chunk: Buffer) => {
    read += chunk.length;
  });
  streams[0]?.on('end', () => streams[0]?.end());
  streams[0]?.resume();
  await send(exchange, pieces.slice(written + 1), exchange);
  expect(await exchange.ended).toEqual(COMPLETE);
  expect(read).toBe(1_000_000);
});

test('an answer that nobody reads is kept up to its window, and others go on; read, it comes in full', async () => {
  const { port } = await serve((stream) => {
    stream.resume();
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ done: 'yes' }));
    stream.end(Buffer.alloc(3_000_000, 'x'));
  });
  const { connection } = await connectTo(port);
  const unread = Array.from({ length: 40 }, () => begin(connection, { isPaused: true }));
  const other = begin(connection);
  for (const { stream } of [...unread, other]) stream.end();
  expect(await other.ended).toEqual(COMPLETE);
  for (const { stream } of unread) {
    expect(stream.unreadBytes).toBeGreaterThan(0);
    expect(stream.unreadBytes).toBeLessThanOrEqual(65_536);
  }
  for (const { stream } of unread) stream.resume();
  for (const exchange of unread) {
    expect(await exchange.ended).toEqual(COMPLETE);
    expect(bodyOf(exchange)).toHaveLength(3_000_000);
    expect(exchange.trailers).toEqual(['done', 'yes']);
  }
});

test('an answer that has come in full is not lost with its connection', async () => {
  const { port, sessions } = await serve((stream) => {
    stream.resume();
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ done: 'yes' }));
    stream.end(Buffer.alloc(50_000, 'x'));
  });
  const { connection, unusable } = await connectTo(port);
  const exchange = begin(connection, { isPaused: true });
  exchange.stream.end();
  await waitUntil('it has come', async () => exchange.stream.isAnswered, WAIT);
  sessions[0]?.destroy();
  await unusable;
  expect(connection.isDestroyed).toBe(true);
  exchange.stream.resume();
  expect(await exchange.ended).toEqual(COMPLETE);
  expect(bodyOf(exchange)).toHaveLength(50_000);
  expect(exchange.trailers).toEqual(['done', 'yes']);
});

test('messages that the server refuses, or did not look at, may be made again; those that are lost may not', async () => {
  const { port, sessions } = await serve((stream, raw) => {
    if (raw.includes('refused')) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    else if (raw.includes('cancelled')) stream.close(constants.NGHTTP2_CANCEL);
  });
  const { connection, unusable } = await connectTo(port);
  const [refused, cancelled, lost] = ['refused', 'cancelled', 'lost'].map((what) =>
    begin(connection, { headers: ['x', what] }),
  );
  expect(await refused?.ended).toEqual({ cause: 'reset', code: constants.NGHTTP2_REFUSED_STREAM, mayBeTaken: false });
  expect(await cancelled?.ended).toEqual({ cause: 'reset', code: constants.NGHTTP2_CANCEL, mayBeTaken: true });
  sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR, lost?.stream.id);
  await unusable;
  expect(connection.isOpen).toBe(false);
  expect(connection.isDestroyed).toBe(false);
  sessions[0]?.destroy();
  expect(await lost?.ended).toEqual({ cause: 'lost', code: 0, mayBeTaken: true });
});

test('whoever is told to go ends when its last message is over; what came too late may be made again', async () => {
  const streams: ServerHttp2Stream[] = [];
  const { port, sessions } = await serve((stream) => {
    stream.resume();
    streams.push(stream);
  });
  const { connection, unusable } = await connectTo(port);
  const first = begin(connection);
  first.stream.end();
  await waitUntil('it has come', async () => streams.length === 1, WAIT);
  const second = begin(connection);
  await waitUntil('it is begun', async () => second.stream.id === 3, WAIT);
  sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR, 1);
  const third = begin(connection);
  await unusable;
  expect(await second.ended).toMatchObject({ mayBeTaken: false });
  expect(await third.ended).toMatchObject({ mayBeTaken: false });
  expect(() => begin(connection)).toThrow('takes no new messages');
  streams[0]?.respond({ ':status': 200 }, { endStream: true });
  expect(await first.ended).toEqual(COMPLETE);
  await waitUntil('it is over', async () => connection.isDestroyed, WAIT);
});

test('pings and settings are answered', async () => {
  const { port, sessions } = await serve(echo);
  const { connection } = await connectTo(port);
  await new Promise<void>((resolve) => connection.ping(resolve));
  await new Promise<void>((resolve) => connection.sendSettings(resolve));
  await new Promise<void>((resolve, reject) =>
    sessions[0]?.ping((error) => (error === null ? resolve() : reject(error))),
  );
  expect(connection.isOpen).toBe(true);
});

test('a message that is given up before the server takes it is not sent', async () => {
  let came = 0;
  const { port } = await serve(
    (stream) => {
      came += 1;
      stream.resume();
    },
    { maxConcurrentStreams: 1 },
  );
  const { connection } = await connectTo(port);
  const first = begin(connection);
  const [second, third] = [begin(connection), begin(connection)];
  second.stream.reset(constants.NGHTTP2_CANCEL);
  expect(await second.ended).toEqual({ cause: 'reset', code: constants.NGHTTP2_CANCEL, mayBeTaken: false });
  await waitUntil('the first has come', async () => came === 1, WAIT);
  first.stream.reset(constants.NGHTTP2_CANCEL);
  await waitUntil('the third has come', async () => came === 2, WAIT);
  expect(third.stream.id).toBe(3);
});

test('what a server refuses to read of a message whose answer is complete goes nowhere, and whoever writes need not wait', async () => {
  const streams: ServerHttp2Stream[] = [];
  const { port } = await serve((stream) => {
    stream.pause();
    stream.respond({ ':status': 200 });
    stream.end(Buffer.alloc(1000));
    streams.push(stream);
  });
  const { connection } = await connectTo(port);
  const exchange = begin(connection, { isPaused: true });
  while (exchange.stream.write(Buffer.alloc(10_000))) await new Promise(setImmediate);
  await waitUntil('the answer has come', async () => exchange.stream.isAnswered, WAIT);
  streams[0]?.close(constants.NGHTTP2_NO_ERROR);
  await waitUntil('nothing is kept', async () => exchange.stream.unsentBytes === 0, WAIT);
  expect(exchange.stream.write(Buffer.alloc(100_000))).toBe(true);
  expect(exchange.stream.unsentBytes).toBe(0);
  exchange.stream.resume();
  expect(await exchange.ended).toEqual(COMPLETE);
  expect(bodyOf(exchange)).toHaveLength(1000);
});

test('the last message of a connection that is told to go is told how it ended, and not that it is lost', async () => {
  const { port, sessions } = await serve((stream, raw) => {
    if (raw.includes('cancelled')) {
      sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR, stream.id);
      stream.close(constants.NGHTTP2_CANCEL);
    }
  });
  const { connection } = await connectTo(port);
  const exchange = begin(connection, { headers: ['x', 'cancelled'] });
  expect(await exchange.ended).toEqual({ cause: 'reset', code: constants.NGHTTP2_CANCEL, mayBeTaken: true });
  await waitUntil('it is over', async () => connection.isDestroyed, WAIT);
});
