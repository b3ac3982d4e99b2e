import type { Frame } from './frame-reader.ts';
import { CompressionError, type DecodedFields, HpackDecoder } from './hpack/decoder.ts';
import { ConnectionError, errorCode, flag, frameType } from './protocol.ts';

/** The fields of a message. */
export interface ReadFields extends DecodedFields {
  /** Whether nothing follows them. */
  readonly isEnd: boolean;
}

/** Twice what the fields may count: a block that is larger is none that somebody means to be read. */
const BLOCK_SHARE = 2;
/** Empty ones, too, cost something. */
const FRAMES_MAX = 32;

/** Puts blocks of fields together, which may come in several frames with nothing between them (RFC 9113, section 4.3). */
export class FieldsReader {
  readonly #decoder: HpackDecoder;
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isEnd = false;
  /** Whose block it is that has not come in full; 0: there is none. */
  streamId = 0;

  constructor(maxBytes: number) {
    this.#decoder = new HpackDecoder(maxBytes);
    this.#maxBytes = maxBytes;
  }

  get isWithinBlock(): boolean {
    return this.streamId !== 0;
  }

  /**
   * @param frame HEADERS or CONTINUATION. @param piece of the block that is in it.
   * @returns undefined until the block has come in full.
   * @throws ConnectionError where it cannot be read, or is too large to be.
   */
  take({ type, flags, streamId }: Frame, piece: Buffer): ReadFields | undefined {
    if (type === frameType.HEADERS) this.#isEnd = (flags & flag.END_STREAM) !== 0;
    else if (!this.isWithinBlock)
      throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'A block goes on that never began');
    const isWhole = (flags & flag.END_HEADERS) !== 0;
    if (isWhole && this.#pieces.length === 0) return this.#decode(piece);
    this.streamId = streamId;
    this.#bytes += piece.length;
    // It is kept beyond this frame.
    this.#pieces.push(Buffer.from(piece));
    if (this.#bytes > this.#maxBytes * BLOCK_SHARE || this.#pieces.length > FRAMES_MAX) {
      throw new ConnectionError(errorCode.ENHANCE_YOUR_CALM, 'A block of fields is too large');
    }
    if (!isWhole) return undefined;
    const block = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    this.streamId = 0;
    return this.#decode(block);
  }

  #decode(block: Buffer): ReadFields {
    try {
      const { fields, fault } = this.#decoder.decode(block);
      return { fields, fault, isEnd: this.#isEnd };
    } catch (error) {
      if (!(error instanceof CompressionError)) throw error;
      throw new ConnectionError(errorCode.COMPRESSION_ERROR, error.message);
    }
  }
}
