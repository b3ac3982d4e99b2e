/** A field that can be named by its index. */
export interface TableEntry {
  readonly name: string;
  readonly value: string;
  /** Whether it is one that no message may have. */
  readonly isMalformed: boolean;
}

/** By default (RFC 9113, section 6.5.2). */
export const TABLE_BYTES = 4096;

/** What an entry counts beside its own bytes (RFC 7541, section 4.1). */
const ENTRY_BYTES = 32;

/** So many places of entries that are gone are kept, at the least, before the others move up. */
const UNUSED_MAX = 64;

/** The bytes that a field counts, in a table or in the limit of a peer's fields (RFC 9113, section 10.5.1). */
export function entryBytes(name: string, value: string): number {
  return name.length + value.length + ENTRY_BYTES;
}

/** The fields that a connection has brought last, one of which is the older the higher its index (RFC 7541, section 2.3.2). */
export class DynamicTable {
  readonly #onEvicted: ((entry: TableEntry, number: number) => void) | undefined;
  #entries: (TableEntry | undefined)[] = [];
  /** Where the oldest one is. */
  #first = 0;
  #bytes = 0;
  #limit: number;
  /** How many there have been. */
  #added = 0;

  /** @param onEvicted told which entry has gone, and the number that {@link add} gave it. */
  constructor(limit: number, onEvicted?: (entry: TableEntry, number: number) => void) {
    this.#limit = limit;
    this.#onEvicted = onEvicted;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Entries that have no room any more go. */
  resize(limit: number): void {
    this.#limit = limit;
    this.#evict(0);
  }

  /** @returns the entry's number; one that is larger than the table empties it, and is not there. */
  add(entry: TableEntry): number {
    const bytes = entryBytes(entry.name, entry.value);
    this.#evict(bytes);
    const number = this.#added;
    if (bytes > this.#limit) return number;
    this.#entries.push(entry);
    this.#bytes += bytes;
    this.#added += 1;
    return number;
  }

  /** @param index 0 for the newest. */
  at(index: number): TableEntry | undefined {
    const place = this.#entries.length - 1 - index;
    return place < this.#first ? undefined : this.#entries[place];
  }

  /** @param number as {@link add} gave it; the entry is still there. */
  indexOf(number: number): number {
    return this.#added - 1 - number;
  }

  #evict(neededBytes: number): void {
    while (this.#bytes + neededBytes > this.#limit && this.#first < this.#entries.length) {
      const entry = this.#entries[this.#first];
      this.#entries[this.#first] = undefined;
      this.#first += 1;
      if (entry === undefined) continue;
      this.#bytes -= entryBytes(entry.name, entry.value);
      this.#onEvicted?.(entry, this.#added - (this.#entries.length - this.#first) - 1);
    }
    if (this.#first < Math.max(UNUSED_MAX, this.#entries.length / 2)) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }
}
