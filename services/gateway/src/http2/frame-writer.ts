import type { Socket } from 'node:net';
import { FRAME_BYTES, FRAME_HEAD_BYTES, flag, frameType, PREFACE } from './protocol.ts';

/** Small frames are put together in blocks of that. */
const BLOCK_BYTES = 8192;
/** Larger pieces of data are not copied. */
const COPIED_BYTES = 1024;

/** Collects the frames that a connection sends until they are taken. */
export class FrameWriter {
  #pieces: Buffer[] = [];
  #bytes = 0;
  #block = Buffer.alloc(0);
  /** Of the block: what has been taken before, and what is written. */
  #taken = 0;
  #written = 0;

  /** What is collected. */
  get bytes(): number {
    return this.#bytes;
  }

  preface(): void {
    this.#put(PREFACE);
  }

  /** @param entries identifiers and values. */
  settings(entries: readonly (readonly [id: number, value: number])[]): void {
    const payload = Buffer.alloc(entries.length * 6);
    for (const [index, [id, value]] of entries.entries()) {
      payload.writeUInt16BE(id, index * 6);
      payload.writeUInt32BE(value, index * 6 + 2);
    }
    this.#frame(frameType.SETTINGS, 0, { payload });
  }

  settingsAck(): void {
    this.#frame(frameType.SETTINGS, flag.ACK, {});
  }

  ping(payload: Buffer): void {
    this.#frame(frameType.PING, 0, { payload });
  }

  pingAck(payload: Buffer): void {
    this.#frame(frameType.PING, flag.ACK, { payload });
  }

  /** A client has taken nothing of a server that it would have to name. */
  goaway(code: number): void {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(code, 4);
    this.#frame(frameType.GOAWAY, 0, { payload });
  }

  windowUpdate(streamId: number, bytes: number): void {
    this.#frame(frameType.WINDOW_UPDATE, 0, { streamId, payload: uint32(bytes) });
  }

  reset(streamId: number, code: number): void {
    this.#frame(frameType.RST_STREAM, 0, { streamId, payload: uint32(code) });
  }

  /** A message that data follow. @param block of fields, encoded; it is copied. */
  headers(streamId: number, block: Buffer): void {
    for (let start = 0; start === 0 || start < block.length; start += FRAME_BYTES) {
      const end = start + FRAME_BYTES;
      const type = start === 0 ? frameType.HEADERS : frameType.CONTINUATION;
      const flags = end < block.length ? 0 : flag.END_HEADERS;
      this.#frame(type, flags, { streamId, payload: block.subarray(start, end) });
    }
  }

  /** A part of a message. It may be kept, as it is, until it is sent. */
  data(streamId: number, payload: Buffer, isEnd: boolean): void {
    const flags = isEnd ? flag.END_STREAM : 0;
    if (payload.length <= COPIED_BYTES) return this.#frame(frameType.DATA, flags, { streamId, payload });
    this.#head({ type: frameType.DATA, flags, streamId, payloadBytes: payload.length });
    this.#endPiece();
    this.#pieces.push(payload);
    this.#bytes += payload.length;
  }

  /** Sends what is collected. @returns whether the socket has room for more. */
  flush(socket: Socket): boolean {
    this.#endPiece();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    if (pieces.length > 1) socket.cork();
    let hasRoom = true;
    for (const piece of pieces) hasRoom = socket.write(piece);
    if (pieces.length > 1) socket.uncork();
    return hasRoom;
  }

  #frame(
    type: number,
    flags: number,
    { streamId = 0, payload = NOTHING }: { readonly streamId?: number; readonly payload?: Buffer },
  ): void {
    this.#head({ type, flags, streamId, payloadBytes: payload.length });
    this.#put(payload);
  }

  #head(head: Readonly<Record<'type' | 'flags' | 'streamId' | 'payloadBytes', number>>): void {
    this.#makeRoom(FRAME_HEAD_BYTES);
    this.#block.writeUIntBE(head.payloadBytes, this.#written, 3);
    this.#block[this.#written + 3] = head.type;
    this.#block[this.#written + 4] = head.flags;
    this.#block.writeUInt32BE(head.streamId, this.#written + 5);
    this.#written += FRAME_HEAD_BYTES;
    this.#bytes += FRAME_HEAD_BYTES;
  }

  #put(payload: Buffer): void {
    if (payload.length === 0) return;
    this.#makeRoom(payload.length);
    payload.copy(this.#block, this.#written);
    this.#written += payload.length;
    this.#bytes += payload.length;
  }

  #makeRoom(bytes: number): void {
    if (this.#block.length - this.#written >= bytes) return;
    this.#endPiece();
    this.#block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes));
    this.#taken = 0;
    this.#written = 0;
  }

  /** What is taken of a block is not written to any more; the rest of it is for the next frames. */
  #endPiece(): void {
    if (this.#written > this.#taken) this.#pieces.push(this.#block.subarray(this.#taken, this.#written));
    this.#taken = this.#written;
  }
}

const NOTHING = Buffer.alloc(0);

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
