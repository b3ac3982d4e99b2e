import { isUnsent } from '@rollcall/platform/outbound/exchange.ts';
import { Stripe } from 'stripe';
import type { Outcome, RefusalReason } from '../../domain/ports.ts';
import { type NoResult, noResultOf, UNREADABLE } from '../call.ts';
import { reasonOf } from './objects.ts';

type Refusal = Extract<Outcome<never>, { readonly outcome: 'refused' }>;

/** What came of a call of Stripe's client. */
export type Tried =
  | { readonly kind: 'object'; readonly object: unknown }
  | { readonly kind: 'none'; readonly result: NoResult }
  | {
      readonly kind: 'refused';
      readonly refusal: Refusal;
      /** What the call names is not there. */
      readonly isMissing: boolean;
      /** The parameter that Stripe finds wrong. */
      readonly param: string | undefined;
    };

/** Makes a call. @param otherwise why Stripe refuses, where its code says no more. */
export async function attempt(run: () => Promise<unknown>, otherwise: RefusalReason, now: Date): Promise<Tried> {
  try {
    return { kind: 'object', object: await run() };
  } catch (error) {
    if (error instanceof Stripe.errors.StripeError) return judge(error, otherwise, now);
    throw error;
  }
}

/** Pure. What an error of Stripe's client says of the call (docs.stripe.com/error-handling). */
function judge(error: Stripe.errors.StripeError, otherwise: RefusalReason, now: Date): Tried {
  const { statusCode: status, code, detail } = error;
  if (error instanceof Stripe.errors.StripeConnectionError) {
    const result = isUnsent(detail)
      ? ({ outcome: 'failed', reason: 'unreachable' } as const)
      : ({ outcome: 'unknown', reason: 'no_answer' } as const);
    return { kind: 'none', result };
  }
  // The key was used for another call, which may have been done.
  if (error instanceof Stripe.errors.StripeIdempotencyError) return none({ outcome: 'unknown', reason: 'conflict' });
  if (status === undefined) return none(UNREADABLE);
  const asRateLimit = error instanceof Stripe.errors.StripeRateLimitError ? 429 : status;
  const result = noResultOf({ status: asRateLimit, headers: error.headers ?? {}, cut: false }, now);
  if (result !== undefined) return none(result);
  // A refusal has its type; another 4xx came from something in between, or is a fault of ours.
  if (status < 400 || error instanceof Stripe.errors.StripeAPIError) return none(UNREADABLE);
  return {
    kind: 'refused',
    refusal: {
      outcome: 'refused',
      reason: refusalReason(error, otherwise),
    },
    isMissing: code === 'resource_missing',
    param: error.param,
  };
}

function refusalReason(error: Stripe.errors.StripeError, otherwise: RefusalReason): RefusalReason {
  if (error instanceof Stripe.errors.StripeCardError) return reasonOf(error.code, error.decline_code);
  if (error.code === 'amount_too_small' || error.code === 'amount_too_large') return 'amount_not_accepted';
  return otherwise;
}

function none(result: NoResult): Tried {
  return { kind: 'none', result };
}

/** Pure. The outcome of a call that has no object. */
export function outcomeOf(tried: Exclude<Tried, { readonly kind: 'object' }>): NoResult | Refusal {
  return tried.kind === 'none' ? tried.result : tried.refusal;
}
