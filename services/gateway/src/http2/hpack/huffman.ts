import { END_OF_STRING, huffmanCodes } from './huffman-code.ts';

/**
 * The code as an automaton that takes four bits at a time. A state is a place within a code, 0 its beginning; what four bits do in a
 * state stands at `state * 16 + bits`.
 */
interface Automaton {
  readonly next: Uint16Array;
  /** A byte that is complete, or {@link NONE}. */
  readonly output: Int16Array;
  /** Whether a string may end in a state: within fewer than eight bits of ones (RFC 7541, section 5.2). */
  readonly isEnd: Uint8Array;
}

const NONE = -1;
/** No state: the end of a string was written within one. */
const WRONG = 0xffff;
const SHORTEST_CODE_BITS = 5;

const { next, output, isEnd } = buildAutomaton();

/**
 * Decodes a string.
 *
 * @param target has room for {@link decodedBytesMax}.
 * @returns how many bytes it is; undefined: it is none.
 */
export function decodeHuffman(source: Uint8Array, target: Uint8Array): number | undefined {
  let state = 0;
  let length = 0;
  for (let half = 0; half < source.length * 2; half += 1) {
    const byte = source[half >> 1] ?? 0;
    const step = state * 16 + (half % 2 === 0 ? byte >> 4 : byte & 15);
    const decoded = output[step] ?? NONE;
    if (decoded !== NONE) {
      target[length] = decoded;
      length += 1;
    }
    state = next[step] ?? WRONG;
    if (state === WRONG) return undefined;
  }
  return isEnd[state] === 1 ? length : undefined;
}

/** The longest that so many bytes can become. */
export function decodedBytesMax(encodedBytes: number): number {
  return Math.floor((encodedBytes * 8) / SHORTEST_CODE_BITS);
}

/** A place within a code, and where the next bit leads: to a place, or to a symbol, of which -1 - symbol is kept. */
interface Place {
  readonly onBit: [number | undefined, number | undefined];
}

function buildAutomaton(): Automaton {
  const places = buildTree();
  const next = new Uint16Array(places.length * 16);
  const output = new Int16Array(places.length * 16).fill(NONE);
  for (const state of places.keys()) {
    for (let bits = 0; bits < 16; bits += 1) {
      const { place, symbol } = walk(places, state, bits);
      next[state * 16 + bits] = symbol === END_OF_STRING ? WRONG : place;
      if (symbol !== undefined && symbol !== END_OF_STRING) output[state * 16 + bits] = symbol;
    }
  }
  const isEnd = new Uint8Array(places.length);
  let place = 0;
  for (let ones = 0; ones < 8; ones += 1) {
    isEnd[place] = 1;
    place = places[place]?.onBit[1] ?? 0;
  }
  return { next, output, isEnd };
}

function buildTree(): Place[] {
  const places: Place[] = [{ onBit: [undefined, undefined] }];
  for (const { symbol, code, bits } of huffmanCodes()) {
    let place = 0;
    for (let bit = bits - 1; bit > 0; bit -= 1) {
      const way = (code >> bit) & 1;
      const onBit = places[place]?.onBit;
      if (onBit === undefined) break;
      onBit[way] ??= places.push({ onBit: [undefined, undefined] }) - 1;
      place = onBit[way];
    }
    const last = places[place];
    if (last !== undefined) last.onBit[code & 1] = -1 - symbol;
  }
  return places;
}

/** Four bits on from a place: no code is so short that they could complete two. */
function walk(places: readonly Place[], from: number, bits: number): { place: number; symbol: number | undefined } {
  let place = from;
  let symbol: number | undefined;
  for (let bit = 3; bit >= 0; bit -= 1) {
    const to = places[place]?.onBit[(bits >> bit) & 1] ?? 0;
    if (to < 0) symbol = -1 - to;
    place = Math.max(0, to);
  }
  return { place, symbol };
}
