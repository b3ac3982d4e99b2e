/** Small pieces are put together in blocks of that. */
const BLOCK_BYTES = 4096;

interface Block {
  readonly bytes: Buffer;
  used: number;
}

/** Data that wait to be read. Pieces are copied: each may be a byte of a large buffer, which would be kept with it. */
export class KeptData {
  readonly #blocks: Block[] = [];
  #length = 0;

  /** Bytes. */
  get length(): number {
    return this.#length;
  }

  push(piece: Buffer): void {
    let block = this.#blocks.at(-1);
    if (block === undefined || block.bytes.length - block.used < piece.length) {
      block = { bytes: Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, piece.length)), used: 0 };
      this.#blocks.push(block);
    }
    block.used += piece.copy(block.bytes, block.used);
    this.#length += piece.length;
  }

  /** @returns what came first, in a piece of any size; undefined: there is nothing. */
  shift(): Buffer | undefined {
    const block = this.#blocks.shift();
    if (block === undefined) return undefined;
    this.#length -= block.used;
    return block.bytes.subarray(0, block.used);
  }

  clear(): void {
    this.#blocks.length = 0;
    this.#length = 0;
  }
}
