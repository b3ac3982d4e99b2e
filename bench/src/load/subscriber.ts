import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/**
 * A WebSocket client that only counts: thousands of a library's would cost more time than what is
 * measured.
 */
export interface SubscriberConnection {
  /** Settles once the connection can receive nothing more. */
  readonly ended: Promise<void>;
  close(): void;
}

export interface SubscriberOptions {
  readonly port: number;
  readonly path: string;
  readonly subprotocol?: string;
  readonly token: string;
  /** The first message, of less than 126 bytes, as are those that `send` takes. */
  readonly greeting: string;
  /** Called with each text frame, as it came. */
  readonly onText: (payload: Buffer, send: (message: string) => void) => void;
}

const TEXT = 0x1;
const PING = 0x9;
const PONG = 0xa;
const FINAL = 0x80;
const MASKED = 0x80;
const LENGTH_16 = 126;
const LENGTH_64 = 127;

/** Resolves once the upgrade was accepted and the greeting sent. */
export async function openSubscriber({
  port,
  path,
  subprotocol,
  token,
  greeting,
  onText,
}: SubscriberOptions): Promise<SubscriberConnection> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const opened = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  socket.once('error', opened.reject);
  socket.on('close', () => ended.resolve());
  const send = (message: string): void => void socket.write(clientFrame(TEXT, Buffer.from(message)));
  let isOpen = false;
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    if (!isOpen) {
      const end = rest.indexOf('\r\n\r\n');
      if (end === -1) return;
      const head = rest.toString('latin1', 0, end);
      if (!head.startsWith('HTTP/1.1 101 ')) {
        opened.reject(new Error(`The upgrade was refused: ${head.split('\r\n', 1)[0]}`));
        socket.destroy();
        return;
      }
      isOpen = true;
      rest = rest.subarray(end + 4);
      opened.resolve();
    }
    rest = readFrames(rest, { socket, onText: (payload) => onText(payload, send) });
  });
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
      `Authorization: Bearer ${token}`,
      ...(subprotocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${subprotocol}`]),
      '\r\n',
    ].join('\r\n'),
  );
  await opened.promise;
  send(greeting);
  return { ended: ended.promise, close: () => socket.destroy() };
}

/** @returns what is no whole frame yet (RFC 6455, section 5.2). */
function readFrames(bytes: Buffer, { socket, onText }: { socket: Socket; onText: (payload: Buffer) => void }): Buffer {
  let at = 0;
  for (;;) {
    const frame = frameAt(bytes, at);
    if (frame === undefined) return at === 0 ? bytes : bytes.subarray(at);
    if (frame.opcode === TEXT) onText(frame.payload);
    else if (frame.opcode === PING) socket.write(clientFrame(PONG, frame.payload));
    at = frame.end;
  }
}

function frameAt(bytes: Buffer, at: number): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < at + 2) return undefined;
  const opcode = (bytes[at] ?? 0) & 0x0f;
  const length = (bytes[at + 1] ?? 0) & 0x7f;
  const headEnd = at + 2 + (length === LENGTH_16 ? 2 : length === LENGTH_64 ? 8 : 0);
  if (bytes.length < headEnd) return undefined;
  const size =
    length === LENGTH_16
      ? bytes.readUInt16BE(at + 2)
      : length === LENGTH_64
        ? Number(bytes.readBigUInt64BE(at + 2))
        : length;
  const end = headEnd + size;
  return bytes.length < end ? undefined : { opcode, payload: bytes.subarray(headEnd, end), end };
}

/** Of less than 126 bytes; the mask, which is there for proxies that are none here, is 0. */
function clientFrame(opcode: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([FINAL | opcode, MASKED | payload.length, 0, 0, 0, 0]), payload]);
}
