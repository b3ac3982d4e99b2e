import { ask, type HttpAnswer, type HttpQuestion, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import { foreignJson } from '@rollcall/platform/outbound/foreign-text.ts';
import { retryAfterMs } from '@rollcall/platform/outbound/retry-after.ts';
import { Agent, type Dispatcher } from 'undici';
import type { SendOutcome } from '../domain/ports.ts';

/** Longer than any answer that says something. */
const LIMIT_BYTES = 65_536;
const CONNECT_TIMEOUT_MS = 3000;

/** What the providers that are called by HTTP share. */
export interface HttpSettings {
  /** As `providerBaseUrl` reads it. */
  readonly baseUrl: URL;
  /** From the call to the last byte of its answer. */
  readonly timeoutMs: number;
}

/** Connections to providers whose URLs the settings name. */
export function createProviderAgent(): Agent {
  return new Agent({ allowH2: false, connect: { timeout: CONNECT_TIMEOUT_MS } });
}

export type CallResult = ({ readonly result: 'answered' } & HttpAnswer) | Uncertain;
type Uncertain = { readonly result: 'not-sent' | 'unknown'; readonly reason: string };

/** Calls once. */
export async function callProvider(
  dispatcher: Dispatcher,
  question: Omit<HttpQuestion, 'limitBytes'>,
  signal: AbortSignal,
): Promise<CallResult> {
  if (signal.aborted) return { result: 'not-sent', reason: 'aborted' };
  try {
    return { result: 'answered', ...(await ask(dispatcher, { ...question, limitBytes: LIMIT_BYTES }, signal)) };
  } catch (error) {
    return {
      result: error instanceof NoAnswerError && error.wasUnsent ? 'not-sent' : 'unknown',
      reason: codeOf(error),
    };
  }
}

/** Of the innermost error that has one; messages may hold URLs. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  // A host of several addresses, none of which could be connected to.
  const inner = error instanceof AggregateError ? error.errors.at(0) : error.cause;
  const within = inner === undefined ? 'unknown' : codeOf(inner);
  if (within !== 'unknown') return within;
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.name === 'TimeoutError' || error.name === 'AbortError' ? 'timeout' : 'unknown';
}

/**
 * What an answer means that the provider's own codes do not explain. A server that fails may have
 * taken the message before.
 */
export function outcomeOfStatus({ status, headers }: HttpAnswer, now: Date): SendOutcome {
  const reason = String(status);
  if (status === 401 || status === 403) return { outcome: 'refused', cause: 'credentials', reason };
  if (status === 402) return { outcome: 'refused', cause: 'credit', reason };
  if (status === 408 || status === 429 || status === 503 || (status >= 300 && status < 400)) {
    const waitMs = retryAfterMs(headers['retry-after'], now);
    return { outcome: 'failed', reason, ...(waitMs !== undefined && { retryAfterMs: waitMs }) };
  }
  if (status === 413) return { outcome: 'refused', cause: 'size', reason };
  if (status >= 400 && status < 500) return { outcome: 'refused', cause: 'content', reason };
  return { outcome: 'unknown', reason };
}

/** What it means that there was no answer. */
export function outcomeWithoutAnswer({ result, reason }: Uncertain): SendOutcome {
  return { outcome: result === 'not-sent' ? 'failed' : 'unknown', reason };
}

/** The fields of a JSON object; none where the text is anything else. */
export function jsonFields(text: string): Readonly<Record<string, unknown>> {
  return fieldsOf(foreignJson(text));
}

/** The fields of an object; none where the value is anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/** A text, or undefined for what is none, or empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Of HTTP's Basic scheme (RFC 7617). */
export function basicAuthorization(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}
