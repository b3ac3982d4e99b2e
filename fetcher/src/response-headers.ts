/** Of an answer. What was sent several times is an array. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The part of a file that an answer holds; `total` is undefined where the server does not know it.
 */
export interface ContentRange {
  readonly start: number;
  readonly end: number;
  readonly total: number | undefined;
}

/** Reads `Content-Range: bytes 5-9/10`. @returns undefined when it is missing or makes no sense. */
export function parseContentRange(header: AnswerHeaders[string]): ContentRange | undefined {
  const [, first, last, size] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(single(header) ?? '') ?? [];
  if (first === undefined || last === undefined || size === undefined) return undefined;
  const range = { start: Number(first), end: Number(last), total: size === '*' ? undefined : Number(size) };
  if (range.end < range.start || (range.total !== undefined && range.end >= range.total)) return undefined;
  return range;
}

/** Reads `Content-Length`. @returns undefined when it is missing or no number. */
export function parseContentLength(header: AnswerHeaders[string]): number | undefined {
  const text = single(header);
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * Reads `Retry-After`, seconds or a date.
 *
 * @returns milliseconds from now, not negative; undefined when it is missing or makes no sense.
 */
export function parseRetryAfterMs(header: AnswerHeaders[string], now: Date): number | undefined {
  const text = single(header);
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now.getTime());
}

/**
 * What `If-Range` is to carry, so that the rest is sent only of the same file: the strong ETag,
 * else the date of the last change. A weak ETag stays the same for files that differ in bytes.
 */
export function validatorOf(headers: AnswerHeaders): string | undefined {
  return strongEtagOf(headers) ?? single(headers['last-modified']);
}

/** The ETag, where it is a strong one. */
export function strongEtagOf(headers: AnswerHeaders): string | undefined {
  const etag = single(headers['etag']);
  return etag !== undefined && /^"[^"]*"$/.test(etag) ? etag : undefined;
}

/**
 * @returns undefined for a header that is missing or was sent several times, which none of these
 * may be.
 */
function single(header: AnswerHeaders[string]): string | undefined {
  return typeof header === 'string' ? header.trim() : undefined;
}
