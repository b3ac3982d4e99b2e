import { type Dispatcher, request } from 'undici';
import { errorMessage } from '../errors.ts';

export interface HttpQuestion {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** From now to the last byte that is read. */
  readonly timeoutMs: number;
  /** What comes after so many bytes is not read. */
  readonly limitBytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Up to the limit, as UTF-8. */
  readonly body: string;
  /** Whether there was more than the limit. */
  readonly cut: boolean;
  readonly tookMs: number;
}

/**
 * Asks once. Redirects are answers like any other: following one would measure something else than
 * what was asked for.
 *
 * @throws when there is no whole answer in time, in words for people; the signal's reason when that
 * aborts.
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
    return { status: response.statusCode, ...read, tookMs: performance.now() - startedMs };
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) throw new Error(`no answer within ${timeoutMs / 1000} s`, { cause: error });
    throw new Error(`no answer: ${errorMessage(error)}`, { cause: error });
  }
}

/** Leaving the loop early closes the connection. */
async function readUpTo(body: AsyncIterable<Uint8Array>, limitBytes: number): Promise<{ body: string; cut: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > limitBytes) break;
  }
  return { body: Buffer.concat(chunks).subarray(0, limitBytes).toString('utf8'), cut: size > limitBytes };
}
