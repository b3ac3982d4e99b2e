/** The alphabet of 3GPP TS 23.038, section 6.2.1, in the order of its codes. */
const GSM_7 = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u001bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
/** Its extension, section 6.2.1.1: each follows an escape, and so counts as two. */
const GSM_7_ESCAPED = new Set('\f^{}\\[~]|€');
const ESCAPE = '\u001b';

/** More than that no message may have. */
export const MOST_SEGMENTS = 10;

export interface Segments {
  readonly encoding: 'GSM-7' | 'UCS-2';
  /** The text in the parts that phones get; at least one. */
  readonly parts: readonly string[];
}

/** Units of a text that fits into one part, and of each part where there are more. */
const SIZES = {
  'GSM-7': { alone: 160, each: 153 },
  'UCS-2': { alone: 70, each: 67 },
} as const;

/**
 * Pure. How an SMS is sent. One character that GSM-7 lacks makes all of it UCS-2. A part never ends
 * within an escaped character or a surrogate pair.
 */
export function segmentsOf(text: string): Segments {
  const characters = Array.from(text);
  const isGsm = characters.every((character) => character !== ESCAPE && (GSM_7.has(character) || isEscaped(character)));
  const encoding = isGsm ? 'GSM-7' : 'UCS-2';
  const unitsOf = isGsm
    ? (character: string) => (isEscaped(character) ? 2 : 1)
    : (character: string) => character.length;
  const { alone, each } = SIZES[encoding];
  const total = characters.reduce((sum, character) => sum + unitsOf(character), 0);
  if (total <= alone) return { encoding, parts: [text] };
  const parts: string[] = [];
  let part = '';
  let units = 0;
  for (const character of characters) {
    if (units + unitsOf(character) > each) {
      parts.push(part);
      part = '';
      units = 0;
    }
    part += character;
    units += unitsOf(character);
  }
  return { encoding, parts: [...parts, part] };
}

function isEscaped(character: string): boolean {
  return GSM_7_ESCAPED.has(character);
}
