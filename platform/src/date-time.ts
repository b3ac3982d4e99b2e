const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
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
  const [matched, year, month, day] = DATE_TIME.exec(text) ?? [];
  if (matched === undefined || !isDay(Number(year), Number(month), Number(day))) return undefined;
  const at = new Date(text.toUpperCase());
  return at.getTime() >= EARLIEST_MS && at.getTime() <= LATEST_MS ? at : undefined;
}

function isDay(year: number, month: number, day: number): boolean {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}
