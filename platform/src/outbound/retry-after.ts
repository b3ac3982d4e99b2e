/** No provider may hold work up for longer. */
const MOST_MS = 24 * 60 * 60 * 1000;

/**
 * Pure. How long the answer's `Retry-After` asks to wait (RFC 9110, section 10.2.3): seconds, or a
 * date.
 *
 * @returns milliseconds, at most a day; undefined where there is none, or none that is valid.
 */
export function retryAfterMs(header: string | undefined, now: Date): number | undefined {
  const text = header?.trim();
  if (text === undefined || text === '') return undefined;
  if (/^\d{1,10}$/.test(text)) return Math.min(Number(text) * 1000, MOST_MS);
  // Date.parse reads much that is no date of HTTP, such as negative numbers.
  const at = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.min(Math.max(0, at - now.getTime()), MOST_MS);
}
