import { DynamicTable, entryBytes, TABLE_BYTES, type TableEntry } from './dynamic-table.ts';
import { decodedBytesMax, decodeHuffman } from './huffman.ts';
import { STATIC_TABLE } from './static-table.ts';

/** A block of fields that cannot be read: nothing that follows on its connection can be (RFC 9113, section 4.3). */
export class CompressionError extends Error {}

/** What is wrong with fields that could be read. */
type FieldsFault = 'malformed' | 'too large';

/** A block of fields. */
export interface DecodedFields {
  /** Names and values in turn; none where there is a fault. */
  readonly fields: string[];
  readonly fault: FieldsFault | undefined;
}

const INTEGER_MAX = 2 ** 28;
/** What a name may consist of (RFC 9113, section 8.2.1): the characters of a token, without capitals. */
const NAME = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** What no value may have, in whatever version of HTTP it goes on. */
const WRONG_IN_VALUE = /[\0\r\n]/;

/** Reads the blocks of fields of one connection, in their order (RFC 7541). Strings are bytes: each character is one. */
export class HpackDecoder {
  readonly #table = new DynamicTable(TABLE_BYTES);
  readonly #maxBytes: number;
  #block: Buffer = Buffer.alloc(0);
  #position = 0;
  #text = Buffer.alloc(256);

  /** @param maxBytes of the fields of one block, as {@link entryBytes} counts. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @throws CompressionError. */
  decode(block: Buffer): DecodedFields {
    this.#block = block;
    this.#position = 0;
    const fields: string[] = [];
    let bytes = 0;
    let fault: FieldsFault | undefined;
    while (this.#position < block.length) {
      const byte = block[this.#position] ?? 0;
      if ((byte & 0xe0) === 0x20) {
        if (bytes > 0) throw new CompressionError('The table is resized within a block');
        this.#resize(this.#integer(5));
        continue;
      }
      const { name, value, isMalformed } = (byte & 0x80) === 0 ? this.#literal(byte) : this.#entryAt(this.#integer(7));
      bytes += entryBytes(name, value);
      if (bytes > this.#maxBytes) fault = 'too large';
      else if (isMalformed) fault ??= 'malformed';
      if (fault === undefined) fields.push(name, value);
    }
    return { fields: fault === undefined ? fields : [], fault };
  }

  #resize(bytes: number): void {
    if (bytes > TABLE_BYTES) throw new CompressionError('The table is larger than it may be');
    this.#table.resize(bytes);
  }

  /** @param first byte of it. */
  #literal(first: number): TableEntry {
    const isIndexed = (first & 0x40) !== 0;
    const index = this.#integer(isIndexed ? 6 : 4);
    const name = index === 0 ? this.#string() : this.#entryAt(index).name;
    const value = this.#string();
    const entry = { name, value, isMalformed: !NAME.test(name) || WRONG_IN_VALUE.test(value) };
    if (isIndexed) this.#table.add(entry);
    return entry;
  }

  #entryAt(index: number): TableEntry {
    const fixed = STATIC_ENTRIES[index - 1];
    const entry = fixed ?? this.#table.at(index - 1 - STATIC_ENTRIES.length);
    if (entry === undefined) throw new CompressionError('There is no such entry');
    return entry;
  }

  /** @param bits of the first byte that belong to it (RFC 7541, section 5.1). */
  #integer(bits: number): number {
    const most = 2 ** bits - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (value > INTEGER_MAX || shift > 28) throw new CompressionError('A number is too large');
      if ((byte & 0x80) === 0) return value;
    }
  }

  #byte(): number {
    const byte = this.#block[this.#position];
    if (byte === undefined) throw new CompressionError('The block ends too early');
    this.#position += 1;
    return byte;
  }

  #string(): string {
    const isHuffman = ((this.#block[this.#position] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#position;
    const end = start + length;
    if (end > this.#block.length) throw new CompressionError('The block ends too early');
    this.#position = end;
    if (!isHuffman) return this.#block.toString('latin1', start, end);
    const most = decodedBytesMax(length);
    if (this.#text.length < most) this.#text = Buffer.alloc(most);
    const decoded = decodeHuffman(this.#block.subarray(start, end), this.#text);
    if (decoded === undefined) throw new CompressionError('A string is not encoded as it says');
    return this.#text.toString('latin1', 0, decoded);
  }
}

const STATIC_ENTRIES = STATIC_TABLE.map(([name, value]) => ({ name, value, isMalformed: false }));
