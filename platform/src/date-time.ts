import { IsDateTime } from 'typebox/format';

/** As protocol buffers and Kubernetes have it: from the year 1 to 9999. */
const EARLIEST_MS = Date.parse('0001-01-01T00:00:00Z');
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Reads a timestamp of RFC 3339, section 5.6, to the millisecond: with seconds and an offset, of a
 * day that there is. Leap seconds have no place in a Date, nor in Kubernetes.
 *
 * @returns undefined for anything else, and beyond the years 1 to 9999 in UTC.
 */
export function parseDateTime(text: string): Date | undefined {
  // The library takes white space for the T.
  if (!IsDateTime(text) || /\s/.test(text)) return undefined;
  const at = new Date(text.toUpperCase());
  return at.getTime() >= EARLIEST_MS && at.getTime() <= LATEST_MS ? at : undefined;
}
