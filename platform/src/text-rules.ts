// What texts may hold, in words of regular expressions that JavaScript (with the flag `u`), Python and Rust read alike: JSON
// Schemas have them as `pattern`, and what checks them is made of the same.

/**
 * For a class of characters: white space (Unicode's `Z`, ECMAScript's `\s`), control characters, and
 * format characters, by which one name looks like another. The two joiners that scripts need for
 * their spelling are none of them (RFC 8264, section 9.8).
 */
export const INVISIBLE = String.raw`\u0000-\u0020\u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200b\u200e\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb${'\u{e0000}'}-${'\u{e007f}'}`;

/** For a class of characters: what terminals act on, or show other text by, such as control characters and changes of direction. */
export const CONTROL = String.raw`\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069`;

/** Whether a text has more characters than so many, as JSON Schema, Kubernetes and PostgreSQL count them: code points. */
export function isLongerThan(text: string, most: number): boolean {
  return text.length > most && Array.from(text).length > most;
}
