import { DynamicTable, entryBytes, TABLE_BYTES } from './dynamic-table.ts';
import { STATIC_TABLE } from './static-table.ts';

/** What is known of a name: its index in the static table, if any, and its entries in the dynamic one by their values. */
interface KnownName {
  readonly fixed: number | undefined;
  readonly fixedValues: ReadonlyMap<string, number>;
  readonly numbers: Map<string, number>;
}

/** Fields that are others in each message: they would only drive out those that are not. */
const CHANGING: ReadonlySet<string> = new Set([
  'content-length',
  'grpc-timeout',
  'traceparent',
  'tracestate',
  'x-request-id',
]);
/** What takes more of the table than that would drive out too much. */
const LARGEST_SHARE = 0.75;
/** What is larger, as tokens are, is remembered when it comes again at once: those of many callers in turn would drive out all else. */
const LARGE_BYTES = 256;
const LARGE_NAMES_MAX = 16;
/** A number of four bytes, each with seven bits, has room for any length that is sent. */
const NUMBER_BYTES = 5;

/** Writes the blocks of fields of one connection (RFC 7541). Each character of a string is one byte; nothing is Huffman-encoded. */
export class HpackEncoder {
  readonly #table: DynamicTable;
  readonly #names = new Map<string, KnownName>();
  /** The last large value of a name. */
  readonly #large = new Map<string, string>();
  #target = Buffer.alloc(1024);
  #position = 0;
  /** The smallest and the last size that the peer has asked for since the last block. */
  #resized: { least: number; last: number } | undefined;

  constructor() {
    this.#table = new DynamicTable(TABLE_BYTES, ({ name, value }, number) => this.#forget(name, value, number));
  }

  /** To be told how large a table the peer keeps. */
  resize(peerBytes: number): void {
    const last = Math.min(peerBytes, TABLE_BYTES);
    this.#resized = { least: Math.min(last, this.#resized?.least ?? last), last };
  }

  /**
   * @param fields names and values in turn.
   * @returns good until the next call.
   */
  encode(fields: readonly string[]): Buffer {
    this.#makeRoom(fields);
    this.#position = 0;
    this.#writeSizes();
    for (let index = 0; index + 1 < fields.length; index += 2)
      this.#write(fields[index] ?? '', fields[index + 1] ?? '');
    return this.#target.subarray(0, this.#position);
  }

  #makeRoom(fields: readonly string[]): void {
    let bytes = 2 * NUMBER_BYTES;
    for (const text of fields) bytes += text.length + 2 * NUMBER_BYTES;
    if (bytes > this.#target.length) this.#target = Buffer.alloc(bytes * 2);
  }

  /** RFC 7541, section 4.2. */
  #writeSizes(): void {
    if (this.#resized === undefined) return;
    const { least, last } = this.#resized;
    this.#resized = undefined;
    for (const bytes of least < last ? [least, last] : [last]) {
      this.#table.resize(bytes);
      this.#number(0x20, 5, bytes);
    }
  }

  #write(name: string, value: string): void {
    const known = this.#nameOf(name);
    const fixed = known.fixedValues.get(value);
    if (fixed !== undefined) return this.#number(0x80, 7, fixed);
    const number = known.numbers.get(value);
    if (number !== undefined) return this.#number(0x80, 7, this.#indexOf(number));
    const isIndexed = this.#isToRemember(name, value);
    const nameIndex = this.#nameIndex(known);
    if (isIndexed) this.#number(0x40, 6, nameIndex);
    else this.#number(0, 4, nameIndex);
    if (nameIndex === 0) this.#string(name);
    this.#string(value);
    if (isIndexed) this.#remember(name, value);
  }

  #isToRemember(name: string, value: string): boolean {
    const bytes = entryBytes(name, value);
    if (CHANGING.has(name) || bytes > this.#table.limit * LARGEST_SHARE) return false;
    if (bytes <= LARGE_BYTES) return true;
    if (this.#large.get(name) === value) return true;
    if (this.#large.size >= LARGE_NAMES_MAX) this.#large.clear();
    this.#large.set(name, value);
    return false;
  }

  #nameIndex({ fixed, numbers }: KnownName): number {
    if (fixed !== undefined) return fixed;
    for (const number of numbers.values()) return this.#indexOf(number);
    return 0;
  }

  #indexOf(number: number): number {
    return STATIC_TABLE.length + 1 + this.#table.indexOf(number);
  }

  #nameOf(name: string): KnownName {
    return this.#names.get(name) ?? FIXED.get(name) ?? UNKNOWN;
  }

  #remember(name: string, value: string): void {
    // What has to go to make room for it may be of the same name, the last of that.
    const number = this.#table.add({ name, value, isMalformed: false });
    const { fixed, fixedValues, numbers } = this.#nameOf(name);
    if (this.#names.has(name)) numbers.set(value, number);
    else this.#names.set(name, { fixed, fixedValues, numbers: new Map([[value, number]]) });
  }

  #forget(name: string, value: string, number: number): void {
    const known = this.#names.get(name);
    if (known?.numbers.get(value) !== number) return;
    known.numbers.delete(value);
    if (known.numbers.size === 0) this.#names.delete(name);
  }

  /** @param prefix the first bits, before a number of so many bits (RFC 7541, section 5.1). */
  #number(prefix: number, bits: number, value: number): void {
    const most = 2 ** bits - 1;
    if (value < most) return this.#byte(prefix | value);
    this.#byte(prefix | most);
    let rest = value - most;
    for (; rest >= 0x80; rest >>= 7) this.#byte((rest & 0x7f) | 0x80);
    this.#byte(rest);
  }

  #string(text: string): void {
    this.#number(0, 7, text.length);
    this.#target.write(text, this.#position, 'latin1');
    this.#position += text.length;
  }

  #byte(byte: number): void {
    this.#target[this.#position] = byte;
    this.#position += 1;
  }
}

const UNKNOWN: KnownName = { fixed: undefined, fixedValues: new Map(), numbers: new Map() };
const FIXED: ReadonlyMap<string, KnownName> = fixedNames();

function fixedNames(): Map<string, KnownName> {
  const names = new Map<string, KnownName & { readonly fixedValues: Map<string, number> }>();
  for (const [place, [name, value]] of STATIC_TABLE.entries()) {
    const known = names.get(name) ?? { fixed: place + 1, fixedValues: new Map(), numbers: new Map() };
    if (value !== '') known.fixedValues.set(value, place + 1);
    names.set(name, known);
  }
  return names;
}
