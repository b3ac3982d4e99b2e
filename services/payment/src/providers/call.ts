import type { Clock } from '@rollcall/platform/clock.ts';
import { ask, type HttpAnswer, type HttpQuestion, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import { foreignJson } from '@rollcall/platform/outbound/foreign-text.ts';
import { retryAfterMs } from '@rollcall/platform/outbound/retry-after.ts';
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import type { Dispatcher } from 'undici';
import type { Outcome } from '../domain/ports.ts';

/** No answer of a provider is longer, but for lists. */
const LIMIT_BYTES = 1024 * 1024;

/** How providers are called. */
export interface Calls {
  readonly clock: Clock;
  /** Its timeout of connecting is to be shorter than `timeoutMs`: who connects has sent nothing. */
  readonly dispatcher: Dispatcher;
  /** From the call to the last byte of the answer. */
  readonly timeoutMs: number;
}

/** What became of a call that has no answer to read. */
export type NoResult = Extract<Outcome<never>, { readonly outcome: 'failed' | 'unknown' }>;

/** An answer that says yes or no (2xx, or a 4xx that is about the call), or none of use. */
export type CallResult =
  | { readonly isAnswered: true; readonly answer: HttpAnswer }
  | { readonly isAnswered: false; readonly result: NoResult };

type ProviderQuestion = Omit<HttpQuestion, 'timeoutMs' | 'limitBytes'> & { readonly limitBytes?: number };

/** Asks a provider once. Never throws for what the provider does. */
export async function call(calls: Calls, question: ProviderQuestion): Promise<CallResult> {
  const { clock, dispatcher, timeoutMs } = calls;
  try {
    const bounds = { timeoutMs, limitBytes: question.limitBytes ?? LIMIT_BYTES };
    const answer = await ask(dispatcher, { ...question, ...bounds }, new AbortController().signal);
    const result = noResultOf(answer, clock.now());
    return result === undefined ? { isAnswered: true, answer } : { isAnswered: false, result };
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    const result = error.wasUnsent
      ? ({ outcome: 'failed', reason: 'unreachable' } as const)
      : ({ outcome: 'unknown', reason: 'no_answer' } as const);
    return { isAnswered: false, result };
  }
}

/**
 * Pure. What a status says that means the same at every provider; undefined where the answer is to
 * be read. A server that fails may have done it before; one that asks to come later has not.
 */
export function noResultOf(answer: Pick<HttpAnswer, 'status' | 'headers' | 'cut'>, now: Date): NoResult | undefined {
  const { status, headers, cut } = answer;
  const waitMs = retryAfterMs(headers['retry-after'], now);
  const wait = waitMs === undefined ? {} : { retryAfterMs: waitMs };
  if (status === 401 || status === 403) return { outcome: 'failed', reason: 'credentials' };
  if (status === 429) return { outcome: 'failed', reason: 'rate_limited', ...wait };
  if (status === 408) return { outcome: 'unknown', reason: 'no_answer', ...wait };
  if (status === 409) return { outcome: 'unknown', reason: 'conflict', ...wait };
  if (status >= 500) return { outcome: 'unknown', reason: 'server_error', ...wait };
  if (status < 200 || (status >= 300 && status < 400) || cut) return UNREADABLE;
  return undefined;
}

/** The provider answered, and nobody can tell what. */
export const UNREADABLE = { outcome: 'unknown', reason: 'unreadable_answer' } as const;

/** Pure. The body as JSON of that form; undefined where it is none. */
export function readJson<Schema extends TSchema>(schema: Schema, body: string): Static<Schema> | undefined {
  const value = foreignJson(body);
  return Value.Check(schema, value) ? value : undefined;
}

/** Pure. Whether a payer's browser may be sent there. */
export function isWebUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** Pure. A lookup that had no answer. */
export function unknownLookup({ retryAfterMs: waitMs }: NoResult) {
  return waitMs === undefined ? ({ found: 'unknown' } as const) : ({ found: 'unknown', retryAfterMs: waitMs } as const);
}
