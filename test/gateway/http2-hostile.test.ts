import { waitUntil } from '@rollcall/local/wait.ts';
import { array, assert, asyncProperty, integer, oneof, record, uint8Array } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { begin, bodyOf, connectHttp2 } from './http2-fixture.ts';
import { type Frame, frameType, initialWindow, type RawBackend, rawBackend, windowUpdate } from './raw-http2.ts';

const WAIT = { timeoutMs: 10_000 };
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const PADDED = 8;

const PROTOCOL_ERROR = 1;
const FLOW_CONTROL_ERROR = 3;
const STREAM_CLOSED = 5;
const FRAME_SIZE_ERROR = 6;
const COMPRESSION_ERROR = 9;
const ENHANCE_YOUR_CALM = 11;

const bytes = (...values: number[]): Buffer => Buffer.from(values);
/** `:status: 200` of the static table. */
const OK = bytes(0x88);
const head = (streamId = 1, flags = 0): Partial<Frame> => ({
  type: frameType.HEADERS,
  flags: END_HEADERS | flags,
  streamId,
  payload: OK,
});
const data = (payload: Buffer, flags = 0): Partial<Frame> => ({ type: frameType.DATA, flags, streamId: 1, payload });
const fields = (block: Buffer, flags = END_HEADERS): Partial<Frame> => ({
  type: frameType.HEADERS,
  flags,
  streamId: 1,
  payload: block,
});
const settings = (payload: Buffer): Partial<Frame> => ({ type: frameType.SETTINGS, payload });
const literal = (name: string, value: string): Buffer =>
  Buffer.concat([bytes(0, name.length), Buffer.from(name), bytes(value.length), Buffer.from(value)]);

/** A connection with a message under way, to a server that then sends what the test says. */
async function connectTo(backend: RawBackend, options: Parameters<typeof connectHttp2>[1] = {}) {
  const connected = await connectHttp2(backend.port, options);
  await waitUntil('it is there', async () => backend.peers.length > 0, WAIT);
  const peer = backend.peers[0];
  if (peer === undefined) throw new Error('There is no peer');
  const exchange = begin(connected.connection);
  return { ...connected, peer, exchange };
}

/** The last frame of a type that the server got, once it is there. */
async function frameOf(backend: RawBackend, type: number, streamId = 0): Promise<Frame> {
  const find = () => backend.peers[0]?.frames.findLast((frame) => frame.type === type && frame.streamId === streamId);
  await waitUntil(`a frame of type ${type}`, async () => find() !== undefined, { ...WAIT, intervalMs: 5 });
  const found = find();
  if (found === undefined) throw new Error('unreachable');
  return found;
}

const endless = Array.from({ length: 40 }, (_, index): Partial<Frame> => {
  return { type: index === 0 ? frameType.HEADERS : frameType.CONTINUATION, streamId: 1, payload: Buffer.alloc(0) };
});
const tooLarge = Array.from({ length: 5 }, (_, index): Partial<Frame> => {
  return { type: index === 0 ? frameType.HEADERS : frameType.CONTINUATION, streamId: 1, payload: Buffer.alloc(16_384) };
});

describe('what ends the connection', () => {
  test.each<[what: string, code: number, frames: readonly Partial<Frame>[]]>([
    ['a frame that is too large', FRAME_SIZE_ERROR, [data(Buffer.alloc(16_385))]],
    ['settings that are cut short', FRAME_SIZE_ERROR, [settings(Buffer.alloc(5))]],
    ['acknowledged settings that say something', FRAME_SIZE_ERROR, [{ ...settings(Buffer.alloc(6)), flags: ACK }]],
    ['settings of a stream', PROTOCOL_ERROR, [{ ...settings(Buffer.alloc(0)), streamId: 1 }]],
    ['a window that is too large', FLOW_CONTROL_ERROR, [initialWindow(2 ** 31)]],
    [
      'a window that grows too large',
      FLOW_CONTROL_ERROR,
      [windowUpdate(2 ** 31 - 1 - 65_535, 1), initialWindow(65_536)],
    ],
    ['frames that are too small', PROTOCOL_ERROR, [settings(bytes(0, 5, 0, 0, 0, 9))]],
    ['a server that wants to be pushed to', PROTOCOL_ERROR, [settings(bytes(0, 2, 0, 0, 0, 1))]],
    ['data of no stream', PROTOCOL_ERROR, [{ ...data(Buffer.alloc(1)), streamId: 0 }]],
    ['data of a stream that was never begun', PROTOCOL_ERROR, [{ ...data(Buffer.alloc(1)), streamId: 99 }]],
    ['an answer of a stream of its own', PROTOCOL_ERROR, [head(2)]],
    ['a push', PROTOCOL_ERROR, [{ type: 5, flags: END_HEADERS, streamId: 1, payload: bytes(0, 0, 0, 2, 0x88) }]],
    ['a ping of seven bytes', FRAME_SIZE_ERROR, [{ type: frameType.PING, payload: Buffer.alloc(7) }]],
    ['a ping of a stream', PROTOCOL_ERROR, [{ type: frameType.PING, streamId: 1, payload: Buffer.alloc(8) }]],
    ['a goodbye that is cut short', FRAME_SIZE_ERROR, [{ type: frameType.GOAWAY, payload: Buffer.alloc(4) }]],
    ['a goodbye of a stream', PROTOCOL_ERROR, [{ type: frameType.GOAWAY, streamId: 1, payload: Buffer.alloc(8) }]],
    ['a reset that is cut short', FRAME_SIZE_ERROR, [{ type: frameType.RST_STREAM, streamId: 1, payload: bytes(0) }]],
    ['fields of no stream', PROTOCOL_ERROR, [{ ...fields(OK, 0), streamId: 0 }]],
    ['a reset of no stream', PROTOCOL_ERROR, [{ type: frameType.RST_STREAM, payload: Buffer.alloc(4) }]],
    ['room for nothing', PROTOCOL_ERROR, [windowUpdate(0)]],
    ['more room than there can be', FLOW_CONTROL_ERROR, [windowUpdate(2 ** 31 - 1)]],
    ['a window that is cut short', FRAME_SIZE_ERROR, [{ type: frameType.WINDOW_UPDATE, payload: bytes(1) }]],
    ['fields that go on without a beginning', PROTOCOL_ERROR, [{ ...head(), type: frameType.CONTINUATION }]],
    [
      'fields that are interrupted',
      PROTOCOL_ERROR,
      [fields(OK, 0), { type: frameType.PING, payload: Buffer.alloc(8) }],
    ],
    [
      'fields that are interrupted by those of another',
      PROTOCOL_ERROR,
      [fields(OK, 0), { ...head(3), type: frameType.CONTINUATION }],
    ],
    ['fields that cannot be read', COMPRESSION_ERROR, [fields(bytes(0xff, 0xff, 0xff, 0xff, 0xff, 0xff))]],
    ['fields that never end', ENHANCE_YOUR_CALM, endless],
    ['fields that are too large to be meant', ENHANCE_YOUR_CALM, tooLarge],
    ['padding longer than its frame', PROTOCOL_ERROR, [head(), data(bytes(9, 1), PADDED)]],
    ['padding of nothing', PROTOCOL_ERROR, [head(), data(Buffer.alloc(0), PADDED)]],
  ])('%s', async (_what, code, frames) => {
    await using backend = await rawBackend();
    const { peer, exchange, ready, unusable, connection } = await connectTo(backend);
    await ready;
    await frameOf(backend, frameType.HEADERS, 1);
    peer.send(...frames);
    expect((await frameOf(backend, frameType.GOAWAY)).payload.readUInt32BE(4)).toBe(code);
    expect(await unusable).toBeInstanceOf(Error);
    expect(connection.isDestroyed).toBe(true);
    expect(await exchange.ended).toEqual({ cause: 'lost', code: 0, mayBeTaken: true });
  });

  test('a server that does not begin with its settings', async () => {
    await using backend = await rawBackend({ isSilent: true });
    const { peer } = await connectTo(backend);
    peer.send({ type: frameType.PING, payload: Buffer.alloc(8) });
    expect((await frameOf(backend, frameType.GOAWAY)).payload.readUInt32BE(4)).toBe(PROTOCOL_ERROR);
  });

  test('a server that speaks HTTP/1', async () => {
    await using backend = await rawBackend({ isSilent: true });
    const { peer, unusable } = await connectTo(backend);
    peer.socket.write('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n');
    expect(await unusable).toBeInstanceOf(Error);
  });

  test('a server that asks again and again, and reads no answer', async () => {
    await using backend = await rawBackend();
    const { peer, unusable, connection } = await connectTo(backend);
    peer.socket.pause();
    const pings = Array.from({ length: 1000 }, () => ({ type: frameType.PING, payload: Buffer.alloc(8) }));
    for (let round = 0; round < 3000 && connection.isOpen; round += 1) {
      peer.send(...pings);
      await new Promise(setImmediate);
    }
    expect((await unusable)?.message).toBe('The server reads no answers');
  });
});

describe('what ends a message, and no other', () => {
  test.each<[what: string, code: number, frames: readonly Partial<Frame>[]]>([
    ['data before a head', PROTOCOL_ERROR, [data(Buffer.alloc(1))]],
    ['data behind the end', STREAM_CLOSED, [head(1, END_STREAM), data(Buffer.alloc(1))]],
    ['a head behind the end', PROTOCOL_ERROR, [head(1, END_STREAM), head()]],
    ['a head without a status', PROTOCOL_ERROR, [fields(literal('x', 'y'))]],
    ['a status that is none', PROTOCOL_ERROR, [fields(literal(':status', '2xx'))]],
    ['a status behind other fields', PROTOCOL_ERROR, [fields(Buffer.concat([literal('x', 'y'), OK]))]],
    ['two statuses', PROTOCOL_ERROR, [fields(Buffer.concat([OK, OK]))]],
    ['a head of a request', PROTOCOL_ERROR, [fields(Buffer.concat([OK, literal(':path', '/')]))]],
    ['a name in capitals', PROTOCOL_ERROR, [fields(Buffer.concat([OK, literal('Date', 'x')]))]],
    ['a value of two lines', PROTOCOL_ERROR, [fields(Buffer.concat([OK, literal('x', 'y\r\nz: 1')]))]],
    ['a beginning that is the end', PROTOCOL_ERROR, [fields(literal(':status', '100'), END_HEADERS | END_STREAM)]],
    ['trailers that are not the end', PROTOCOL_ERROR, [head(), fields(literal('x', 'y'))]],
    ['trailers with a status', PROTOCOL_ERROR, [head(), head(1, END_STREAM)]],
    ['room for nothing', PROTOCOL_ERROR, [windowUpdate(0, 1)]],
    ['more room than there can be', FLOW_CONTROL_ERROR, [windowUpdate(2 ** 31 - 1, 1)]],
    [
      'more data than it has room for',
      FLOW_CONTROL_ERROR,
      [head(), ...Array.from({ length: 5 }, () => data(Buffer.alloc(16_384)))],
    ],
    [
      'more padding than it has room for',
      FLOW_CONTROL_ERROR,
      [head(), ...Array.from({ length: 5 }, () => data(Buffer.alloc(16_384)))],
    ],
  ])('%s', async (what, code, frames) => {
    await using backend = await rawBackend();
    const { peer, exchange, connection } = await connectTo(backend);
    if (what.includes('room for')) exchange.stream.pause();
    await frameOf(backend, frameType.HEADERS, 1);
    peer.send(...frames);
    expect((await frameOf(backend, frameType.RST_STREAM, 1)).payload.readUInt32BE(0)).toBe(code);
    const next = begin(connection);
    next.stream.end();
    await frameOf(backend, frameType.HEADERS, 3);
    // What is still on its way for the other one is for nobody.
    peer.send(data(Buffer.alloc(10)), head(1), head(3, END_STREAM));
    expect(await next.ended).toMatchObject({ cause: 'complete' });
  });

  test('a head over the limit', async () => {
    await using backend = await rawBackend();
    const { peer, exchange } = await connectTo(backend, { maxHeaderBytes: 500 });
    await frameOf(backend, frameType.HEADERS, 1);
    peer.send(fields(Buffer.concat([OK, ...Array.from({ length: 5 }, () => literal('x', 'y'.repeat(100)))])));
    expect(await exchange.ended).toEqual({ cause: 'reset', code: ENHANCE_YOUR_CALM, mayBeTaken: true });
  });
});

test('a server that acknowledges nothing does not keep a message from its place', async () => {
  await using backend = await rawBackend();
  const { peer, exchange, connection, ready } = await connectTo(backend);
  await ready;
  peer.send(settings(bytes(0, 3, 0, 0, 0, 1)));
  await waitUntil('it is known', async () => connection.maxStreams === 1, WAIT);
  begin(connection);
  exchange.stream.reset(8);
  expect((await frameOf(backend, frameType.HEADERS, 3)).streamId).toBe(3);
});

test('padding is not data, and what is not known is not looked at', async () => {
  await using backend = await rawBackend();
  const { peer, exchange } = await connectTo(backend);
  exchange.stream.end();
  await frameOf(backend, frameType.HEADERS, 1);
  const priority = { type: frameType.HEADERS, flags: END_HEADERS | 0x20 | PADDED, streamId: 1 };
  peer.send(
    { type: 77, streamId: 1, payload: Buffer.alloc(3) },
    { type: 2, streamId: 1, payload: Buffer.alloc(5) },
    { ...priority, payload: bytes(2, 0, 0, 0, 0, 0, 0x88, 0, 0) },
    data(bytes(3, 65, 66, 0, 0, 0), PADDED),
    data(bytes(67), END_STREAM),
  );
  expect(await exchange.ended).toMatchObject({ cause: 'complete' });
  expect(exchange.head).toEqual([':status', '200']);
  expect(bodyOf(exchange).toString()).toBe('ABC');
});

test('whatever bytes a server sends, nothing is thrown, and every message is told its end', async () => {
  const frame = record({
    type: integer({ min: 0, max: 10 }),
    flags: integer({ min: 0, max: 0x2f }),
    streamId: integer({ min: 0, max: 4 }),
    payload: uint8Array({ maxLength: 40 }).map((values) => Buffer.from(values)),
  });
  await assert(
    asyncProperty(array(oneof(frame, uint8Array({ maxLength: 20 })), { maxLength: 30 }), async (pieces) => {
      await using backend = await rawBackend();
      const { peer, exchange, ready } = await connectTo(backend);
      await ready;
      const other = begin((await connectHttp2(backend.port)).connection);
      for (const piece of pieces) {
        if (piece instanceof Uint8Array) peer.socket.write(piece);
        else peer.send(piece);
      }
      peer.socket.end();
      backend.peers[1]?.socket.destroy();
      await exchange.ended;
      other.stream.reset(8);
      await other.ended;
    }),
    { numRuns: 200 },
  );
});
