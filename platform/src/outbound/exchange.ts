import { isUtf8 } from 'node:buffer';
import { type Dispatcher, request } from 'undici';
import { errorMessage } from '../errors.ts';

export interface HttpQuestion {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** From now to the last byte that is read. */
  readonly timeoutMs: number;
  /** What comes after so many bytes is not read. */
  readonly limitBytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** By their names in lower case; of those that came more than once, the first. */
  readonly headers: Readonly<Record<string, string>>;
  /** Up to the limit, as UTF-8; bytes that are none are replaced. */
  readonly body: string;
  /** Whether all that was read is UTF-8. */
  readonly isUtf8: boolean;
  /** Whether there was more than the limit. */
  readonly cut: boolean;
  readonly tookMs: number;
}

/** There is no whole answer. Its message is for people. */
export class NoAnswerError extends Error {
  /** Whether the request surely did not arrive: no connection came about, so nothing was sent. */
  readonly wasUnsent: boolean;

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'NoAnswerError';
    this.wasUnsent = isUnsent(cause);
  }
}

/** System calls that come before the first byte of a request. */
const CONNECTING: ReadonlySet<unknown> = new Set(['connect', 'getaddrinfo']);

/** Errors of connecting that no system call reports: of undici, of our own rules, of TLS. */
const UNSENT_CODES: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'ADDRESS_REFUSED',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/** Pure. Whether an error says that no byte of a request was sent: nothing can have come of it. */
export function isUnsent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnsent);
  if (!(error instanceof Error)) return false;
  if ('syscall' in error && CONNECTING.has(error.syscall)) return true;
  if ('code' in error && UNSENT_CODES.has(error.code)) return true;
  return isUnsent(error.cause);
}

/**
 * Asks once. Redirects are answers like any other: following one would measure something else than
 * what was asked for.
 *
 * @throws NoAnswerError when there is no whole answer in time; the signal's reason when that aborts.
 */
export async function ask(
  dispatcher: Dispatcher,
  { url, method, headers, body, timeoutMs, limitBytes }: HttpQuestion,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  signal.throwIfAborted();
  const startedMs = performance.now();
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await request(url, {
      dispatcher,
      method,
      headers: { 'user-agent': 'rollcall', ...headers },
      body: body ?? null,
      signal: AbortSignal.any([signal, timeout]),
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const read = await readUpTo(response.body, limitBytes);
    const fields = firstOfEach(response.headers);
    return { status: response.statusCode, headers: fields, ...read, tookMs: performance.now() - startedMs };
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) throw new NoAnswerError(`no answer within ${timeoutMs / 1000} s`, error);
    throw new NoAnswerError(`no answer: ${errorMessage(error)}`, error);
  }
}

function firstOfEach(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Leaving the loop early closes the connection. */
async function readUpTo(
  body: AsyncIterable<Uint8Array>,
  limitBytes: number,
): Promise<Pick<HttpAnswer, 'body' | 'cut' | 'isUtf8'>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > limitBytes) break;
  }
  const bytes = Buffer.concat(chunks).subarray(0, limitBytes);
  return { body: bytes.toString('utf8'), isUtf8: isUtf8(bytes), cut: size > limitBytes };
}
