/** What stands for a character that is none (Unicode, section 3.9). */
const REPLACEMENT = '\uFFFD';

/**
 * Pure. A text that somebody else wrote, as PostgreSQL takes it: halves of surrogate pairs and NUL
 * are replaced. A text that was cut in the middle of an emoji ends in such a half.
 */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', REPLACEMENT);
}

/** Pure. JSON that somebody else wrote, whose texts are storable; undefined where it is none. */
export function foreignJson(text: string): unknown {
  try {
    return JSON.parse(text, (_name, value: unknown) => (typeof value === 'string' ? storableText(value) : value));
  } catch {
    return undefined;
  }
}
