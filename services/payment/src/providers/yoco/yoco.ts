import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import { type Static, Type } from 'typebox';
import {
  type Checkout,
  type CheckoutRequest,
  idempotencyKeyOf,
  type Lookup,
  type Money,
  type Outcome,
  type PaymentProvider,
  type PaymentQuestion,
  type Refund,
  type RefundRequest,
} from '../../domain/ports.ts';
import { type CallResult, type Calls, call, isWebUrl, readJson, UNREADABLE, unknownLookup } from '../call.ts';
import { rejectionsBelow } from '../single-currency.ts';
import { factsOfEvent, verifyEvent } from './notifications.ts';
import { modeOf, YOCO_CURRENCY, type YocoSettings } from './settings.ts';

/** R2.00. */
const LEAST: Money = { amount: 200n, currency: YOCO_CURRENCY };

const CheckoutAnswer = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  redirectUrl: Type.String(),
  status: Type.String(),
  amount: Type.Integer(),
  currency: Type.String(),
  paymentId: Type.Optional(Type.Union([Type.String({ maxLength: 255 }), Type.Null()])),
  processingMode: Type.Optional(Type.String()),
});

const RefundAnswer = Type.Object({
  refundId: Type.String({ minLength: 1, maxLength: 255 }),
  status: Type.String(),
});

const Fault = Type.Object({ description: Type.Optional(Type.String()), message: Type.Optional(Type.String()) });

export interface YocoDeps extends Calls {
  readonly settings: YocoSettings;
}

type Ask = (path: string, post?: { readonly key: string; readonly body: unknown }) => Promise<CallResult>;

/**
 * Yoco's online checkouts, of South Africa (developer.yoco.com). It stores no methods. It knows the
 * keys of calls for 24 hours.
 */
export function createYoco(deps: YocoDeps): PaymentProvider {
  const { settings, clock } = deps;
  const ask: Ask = (path, post) =>
    call(deps, {
      method: post === undefined ? 'GET' : 'POST',
      url: urlBelow(settings.apiUrl, path),
      headers: {
        authorization: `Bearer ${settings.secretKey}`,
        ...(post === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': post.key }),
      },
      ...(post === undefined ? {} : { body: JSON.stringify(post.body) }),
    });

  return {
    name: 'yoco',
    repeatable: new Set(['checkout', 'refund']),
    rejectionsOf: (money) => rejectionsBelow(money, LEAST),
    createCheckout: (request) => createCheckout(ask, settings, request),
    lookUp: (question) => lookUp(ask, settings, question),
    refund: (request) => refund(ask, request),
    // Its API has no question for one refund: an event ends it, or the same call with the same key.
    lookUpRefund: async () => ({ found: 'unknown' }),
    verify: async (notification) => ({ eventKey: verifyEvent(notification, settings, clock.now()), warnings: [] }),
    readFacts: factsOfEvent,
  };
}

async function createCheckout(
  ask: Ask,
  settings: YocoSettings,
  { paymentId, attempt, purpose, money, itemName, returnUrl, cancelUrl }: CheckoutRequest,
): Promise<Outcome<Checkout>> {
  if (purpose !== 'pay') return { outcome: 'refused', reason: 'not_supported' };
  const amount = Number(money.amount);
  const body = {
    amount,
    currency: money.currency,
    successUrl: returnUrl,
    cancelUrl,
    failureUrl: cancelUrl,
    metadata: { paymentId },
    lineItems: [{ displayName: itemName, quantity: 1, pricingDetails: { price: amount } }],
  };
  const asked = await ask('/checkouts', { key: idempotencyKeyOf('pay', paymentId, attempt), body });
  if (!asked.isAnswered) return asked.result;
  if (asked.answer.status >= 400) return refusalOf(asked.answer.status);
  const checkout = readJson(CheckoutAnswer, asked.answer.body);
  if (checkout === undefined || !isOf(checkout, money, settings) || !isWebUrl(checkout.redirectUrl)) return UNREADABLE;
  const redirect = { kind: 'url', url: checkout.redirectUrl } as const;
  return { outcome: 'accepted', value: { checkoutRef: checkout.id, redirect } };
}

async function lookUp(ask: Ask, settings: YocoSettings, question: PaymentQuestion): Promise<Lookup> {
  const { paymentId, checkoutRef } = question;
  // Nobody has the address of a checkout whose id we never learnt, so nobody can pay it.
  if (checkoutRef === undefined) return { found: 'absent' };
  const asked = await ask(`/checkouts/${encodeURIComponent(checkoutRef)}`);
  if (!asked.isAnswered) return unknownLookup(asked.result);
  const checkout = readJson(CheckoutAnswer, asked.answer.body);
  if (asked.answer.status >= 400 || checkout?.id !== checkoutRef) return { found: 'unknown' };
  if (checkout.processingMode !== undefined && checkout.processingMode !== modeOf(settings))
    return { found: 'unknown' };
  const payment = { paymentId, checkoutRef };
  if (checkout.status === 'processing') return { found: 'facts', facts: [{ kind: 'payment.processing', payment }] };
  if (checkout.status !== 'completed') return { found: 'open' };
  if (typeof checkout.paymentId !== 'string') return { found: 'unknown' };
  const money = { amount: BigInt(checkout.amount), currency: checkout.currency };
  const paid = { kind: 'payment.succeeded', payment: { ...payment, chargeRef: checkout.paymentId }, money } as const;
  return { found: 'facts', facts: [paid] };
}

async function refund(ask: Ask, request: RefundRequest): Promise<Outcome<Refund>> {
  const { refundId, attempt, money, checkoutRef } = request;
  if (checkoutRef === undefined) return { outcome: 'refused', reason: 'not_refundable' };
  const asked = await ask(`/checkouts/${encodeURIComponent(checkoutRef)}/refund`, {
    key: idempotencyKeyOf('refund', refundId, attempt),
    body: { amount: Number(money.amount), metadata: { refundId } },
  });
  if (!asked.isAnswered) return asked.result;
  const { status, body } = asked.answer;
  if (status >= 400) {
    const fault = readJson(Fault, body);
    // By us, under another key, or by somebody at Yoco's own page: a person has to look.
    const isRefunded = /already been refunded/i.test(fault?.description ?? fault?.message ?? '');
    return isRefunded ? { outcome: 'unknown', reason: 'conflict' } : refusalOf(status);
  }
  const answer = readJson(RefundAnswer, body);
  if (answer === undefined) return UNREADABLE;
  if (answer.status === 'failed') return { outcome: 'refused', reason: 'not_refundable' };
  // Whatever the answer calls it, the event says how it ended.
  return { outcome: 'accepted', value: { refundRef: answer.refundId, isSettled: false } };
}

/** 422 says that the key was used for another call: that one may have been done. */
function refusalOf(status: number): Outcome<never> {
  if (status === 422) return { outcome: 'unknown', reason: 'conflict' };
  return { outcome: 'refused', reason: 'not_accepted' };
}

function isOf(checkout: Static<typeof CheckoutAnswer>, money: Money, settings: YocoSettings): boolean {
  const { amount, currency, processingMode = modeOf(settings) } = checkout;
  return BigInt(amount) === money.amount && currency === money.currency && processingMode === modeOf(settings);
}
