import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Types of frames (RFC 9113, section 6). */
export const frameType = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

const ACK = 1;
const END_STREAM = 1;
const END_HEADERS = 4;
const HEAD_BYTES = 9;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** One frame, whether it is right or wrong. */
function encodeFrame({ type, flags = 0, streamId = 0, payload = Buffer.alloc(0) }: Partial<Frame>): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type ?? 0;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** A block of literals that are not indexed (RFC 7541, section 6.2.2). */
function encodeHeaders(headers: Readonly<Record<string, string>>): Buffer {
  const parts = Object.entries(headers).map(([name, value]) => {
    return Buffer.concat([
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ]);
  });
  return Buffer.concat(parts);
}

/**
 * One side of a connection of HTTP/2 that sends what a test says, and answers nothing by itself.
 */
export interface RawPeer {
  readonly socket: Socket;
  /** All that came. */
  readonly frames: readonly Frame[];
  send(...frames: Partial<Frame>[]): void;
  /** Begins a call, and ends it where it has a message. */
  call(streamId: number, headers: Readonly<Record<string, string>>, message?: Buffer): void;
}

function rawPeer(socket: Socket, skippedBytes: number): RawPeer {
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  let skip = skippedBytes;
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    if (skip > 0 && rest.length >= skip) {
      rest = rest.subarray(skip);
      skip = 0;
    }
    if (skip > 0) return;
    while (rest.length >= HEAD_BYTES && rest.length >= HEAD_BYTES + rest.readUIntBE(0, 3)) {
      const end = HEAD_BYTES + rest.readUIntBE(0, 3);
      const [type = 0, flags = 0] = rest.subarray(3, 5);
      frames.push({ type, flags, streamId: rest.readUInt32BE(5), payload: rest.subarray(HEAD_BYTES, end) });
      rest = rest.subarray(end);
    }
  });
  const send = (...sent: Partial<Frame>[]) => void socket.write(Buffer.concat(sent.map(encodeFrame)));
  return {
    socket,
    frames,
    send,
    call(streamId, headers, message) {
      const payload = encodeHeaders({
        ':method': 'POST',
        ':scheme': 'http',
        ':authority': 'gateway',
        ...headers,
        'content-type': 'application/grpc',
      });
      send({ type: frameType.HEADERS, flags: END_HEADERS, streamId, payload });
      if (message !== undefined) send({ type: frameType.DATA, flags: END_STREAM, streamId, payload: message });
    },
  };
}

/** Window for so many bytes more of what is sent to a peer: on one stream, or on all of them. */
export function windowUpdate(bytes: number, streamId = 0): Partial<Frame> {
  return { type: frameType.WINDOW_UPDATE, streamId, payload: uint32(bytes) };
}

/** So many bytes may be sent to a peer on each new stream. */
export function initialWindow(bytes: number): Partial<Frame> {
  const INITIAL_WINDOW_SIZE = Buffer.from([0, 4]);
  return { type: frameType.SETTINGS, payload: Buffer.concat([INITIAL_WINDOW_SIZE, uint32(bytes)]) };
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A caller that has said what a client says first. */
export async function rawCaller(port: number): Promise<RawPeer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  const peer = rawPeer(socket, 0);
  socket.write(PREFACE);
  peer.send({ type: frameType.SETTINGS }, { type: frameType.SETTINGS, flags: ACK });
  return peer;
}

export interface RawBackend {
  readonly server: Server;
  readonly port: number;
  readonly peers: readonly RawPeer[];
}

/**
 * A backend that accepts connections and, unless it is silent, speaks first as a server does. It
 * never closes its side.
 */
export async function rawBackend({
  isSilent = false,
  host = '127.0.0.1',
  port = 0,
} = {}): Promise<RawBackend & AsyncDisposable> {
  const peers: RawPeer[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const peer = rawPeer(socket, PREFACE.length);
    peers.push(peer);
    if (!isSilent) peer.send({ type: frameType.SETTINGS }, { type: frameType.SETTINGS, flags: ACK });
  });
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  return {
    server,
    port: typeof address === 'object' && address !== null ? address.port : port,
    peers,
    async [Symbol.asyncDispose]() {
      for (const { socket } of peers) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
