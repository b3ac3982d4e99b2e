import { ConnectionError, errorCode, FRAME_BYTES, FRAME_HEAD_BYTES, flag, frameType } from './protocol.ts';

/** A frame as it came. Its payload is good as long as whoever gets it does not return. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Cuts what comes over a connection into frames. */
export class FrameReader {
  #rest: Buffer | undefined;

  /**
   * @param onFrame called for each frame that is complete; returns whether there is to be another.
   * @throws ConnectionError for a frame that is larger than may be.
   */
  read(chunk: Buffer, onFrame: (frame: Frame) => boolean): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    let start = 0;
    while (bytes.length - start >= FRAME_HEAD_BYTES) {
      const payloadStart = start + FRAME_HEAD_BYTES;
      const payloadBytes = bytes.readUIntBE(start, 3);
      if (payloadBytes > FRAME_BYTES) {
        throw new ConnectionError(errorCode.FRAME_SIZE_ERROR, 'A frame is larger than may be');
      }
      const end = payloadStart + payloadBytes;
      if (end > bytes.length) break;
      const isToGoOn = onFrame({
        type: bytes[start + 3] ?? 0,
        flags: bytes[start + 4] ?? 0,
        streamId: bytes.readUInt32BE(start + 5) & 0x7fffffff,
        payload: bytes.subarray(payloadStart, end),
      });
      if (!isToGoOn) return;
      start = end;
    }
    if (start < bytes.length) this.#rest = bytes.subarray(start);
  }
}

/** The data in a frame. @param start of them, behind the length of the padding. @throws ConnectionError. */
export function withoutPadding({ flags, payload }: Frame, start = 0): Buffer {
  const isPadded = (flags & flag.PADDED) !== 0;
  const first = start + (isPadded ? 1 : 0);
  const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0);
  if (first > end) throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'The padding is longer than the frame');
  return first === 0 && end === payload.length ? payload : payload.subarray(first, end);
}

/** The piece of a block of fields that is in a frame of such (RFC 9113, sections 6.2 and 6.10). @throws ConnectionError. */
export function fieldsIn(frame: Frame): Buffer {
  if (frame.type !== frameType.HEADERS) return frame.payload;
  const PRIORITY_BYTES = 5;
  return withoutPadding(frame, (frame.flags & flag.PRIORITY) === 0 ? 0 : PRIORITY_BYTES);
}
