/**
 * Characters that could move the cursor, change colours or reverse the direction of the text in a
 * terminal.
 */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Text from elsewhere, safe to show: names and messages come from whoever registered. */
export function printable(text: string): string {
  return text.replace(CONTROL, '\uFFFD');
}

/** How many columns of a terminal the text has. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

/** Fills up with spaces to a display width; longer text stays whole. */
export function padTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}
