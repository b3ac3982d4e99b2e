import { CONTROL } from '../text-rules.ts';

/** Member of a schema: in which words people are told of its pattern. */
export const WORDS = 'x-words';

/** A pattern for a schema, and what who does not keep it is told in its place. @param words such as `must have no blanks`. */
export function patternInWords(pattern: string, words: string): { readonly pattern: string; readonly [WORDS]: string } {
  return { pattern, [WORDS]: words };
}

/** Of one line of text. */
export const ONE_LINE = patternInWords(`^[^${CONTROL}]*$`, 'must be one line, without control characters');
