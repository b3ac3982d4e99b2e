import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { errorMessage } from '../errors.ts';
import { LateError } from '../within-time.ts';
import { AnswerReader } from './answer-reader.ts';

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
  /** All of them, as they came. */
  readonly allHeaders: Readonly<Record<string, string | readonly string[] | undefined>>;
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
  const reader = new AnswerReader(limitBytes);
  const leave = () => reader.abort(new Error('Nobody waits for the answer', { cause: signal.reason }));
  // Signals that end with others, and timers of signals, cost more than the request.
  signal.addEventListener('abort', leave);
  const timer = setTimeout(() => reader.abort(new LateError(timeoutMs)), timeoutMs);
  try {
    dispatcher.dispatch(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: { 'user-agent': 'rollcall', ...headers },
        body: body ?? null,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      reader,
    );
    const { status, headers: allHeaders, bytes, cut } = await reader.answer;
    const text = { body: bytes.toString('utf8'), isUtf8: isUtf8(bytes) };
    const tookMs = performance.now() - startedMs;
    return { status, headers: firstOfEach(allHeaders), allHeaders, ...text, cut, tookMs };
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof LateError ? ` within ${timeoutMs / 1000} s` : `: ${errorMessage(error)}`;
    throw new NoAnswerError(`no answer${why}`, error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}

function firstOfEach(headers: IncomingHttpHeaders): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) fields[name] = first;
  }
  return fields;
}
