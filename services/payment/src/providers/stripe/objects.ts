import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Money, ProviderFact, RefusalReason, StoredMethod } from '../../domain/ports.ts';
import { fromStripeAmount } from './amounts.ts';

// Objects of Stripe's API as events and answers have them. Only what is used is read: the API
// version of an event is that of its endpoint, not of the client.

const Id = Type.String({ minLength: 1, maxLength: 255 });
/** An id, or the whole object where it was expanded. */
const Link = Type.Union([Id, Type.Object({ id: Id }), Type.Null()]);
const OptionalLink = Type.Optional(Link);
const Amount = Type.Integer({ minimum: 0 });

/** What we write into each object that we make. */
const Metadata = Type.Optional(
  Type.Union([
    Type.Null(),
    Type.Object({
      paymentId: Type.Optional(Id),
      refundId: Type.Optional(Id),
      /** `stored`: a charge without the payer. */
      origin: Type.Optional(Type.String()),
    }),
  ]),
);

const Fault = Type.Union([
  Type.Null(),
  Type.Object({ code: Type.Optional(Type.String()), decline_code: Type.Optional(Type.String()) }),
]);

const Session = Type.Object({
  id: Id,
  mode: Type.String(),
  status: Type.Union([Type.String(), Type.Null()]),
  payment_status: Type.String(),
  amount_total: Type.Union([Amount, Type.Null()]),
  currency: Type.Union([Type.String(), Type.Null()]),
  payment_intent: OptionalLink,
  setup_intent: Type.Optional(Type.Unknown()),
  url: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  metadata: Metadata,
});

const Intent = Type.Object({
  id: Id,
  status: Type.String(),
  amount_received: Amount,
  currency: Type.String(),
  customer: OptionalLink,
  payment_method: OptionalLink,
  setup_future_usage: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  last_payment_error: Type.Optional(Fault),
  metadata: Metadata,
});

const Setup = Type.Object({
  id: Id,
  status: Type.String(),
  customer: OptionalLink,
  payment_method: OptionalLink,
  metadata: Metadata,
});

const Refunded = Type.Object({
  id: Id,
  status: Type.Union([Type.String(), Type.Null()]),
  amount: Amount,
  currency: Type.String(),
  payment_intent: OptionalLink,
  metadata: Metadata,
});

const Dispute = Type.Object({
  id: Id,
  status: Type.String(),
  amount: Amount,
  currency: Type.String(),
  payment_intent: OptionalLink,
});

const List = Type.Object({ data: Type.Array(Type.Unknown()) });

/** Pure. A Checkout Session; undefined where it is none. */
export const readSession = (object: unknown) => read(Session, object);
/** Pure. A PaymentIntent; undefined where it is none. */
export const readIntent = (object: unknown) => read(Intent, object);
/** Pure. A Refund; undefined where it is none. */
export const readRefund = (object: unknown) => read(Refunded, object);
/** Pure. The entries of a page; undefined where it is none. */
export const readList = (object: unknown) => read(List, object)?.data;

type Facts = readonly ProviderFact[];

/**
 * Pure. What a Checkout Session says; undefined where it is none. One of mode `setup` says nothing:
 * its SetupIntent does.
 *
 * @param hasFailed the event that it came with says so; the session does not.
 */
export function sessionFacts(object: unknown, hasFailed: boolean): Facts | undefined {
  const session = readSession(object);
  if (session === undefined) return undefined;
  const paymentId = session.metadata?.paymentId;
  if (paymentId === undefined) return [];
  const chargeRef = linkOf(session.payment_intent);
  const payment = { paymentId, checkoutRef: session.id, ...(chargeRef === undefined ? {} : { chargeRef }) };
  if (session.status === 'expired') return [{ kind: 'payment.expired', payment }];
  if (session.mode === 'setup' || session.status !== 'complete') return [];
  if (hasFailed) return [{ kind: 'payment.failed', payment, reason: 'declined' }];
  if (session.payment_status !== 'paid') return [{ kind: 'payment.processing', payment }];
  const money = moneyOf(session.amount_total, session.currency);
  return money === undefined ? undefined : [{ kind: 'payment.succeeded', payment, money }];
}

/** Pure. What a PaymentIntent says; undefined where it is none. */
export function intentFacts(object: unknown): Facts | undefined {
  const intent = readIntent(object);
  if (intent === undefined) return undefined;
  const { id, status, metadata } = intent;
  const paymentId = metadata?.paymentId;
  if (paymentId === undefined) return [];
  const payment = { paymentId, chargeRef: id };
  const isStored = metadata?.origin === 'stored';
  switch (status) {
    case 'succeeded': {
      const money = moneyOf(intent.amount_received, intent.currency);
      const method = intent.setup_future_usage === 'off_session' ? methodOf(intent) : undefined;
      if (money === undefined) return undefined;
      return [{ kind: 'payment.succeeded', payment, money, ...(method === undefined ? {} : { method }) }];
    }
    case 'processing':
      return [{ kind: 'payment.processing', payment }];
    case 'canceled':
      // That of a session ends with its session.
      return isStored ? [{ kind: 'payment.cancelled', payment }] : [];
    case 'requires_payment_method':
    case 'requires_action': {
      const fault = intent.last_payment_error;
      if (fault === null || fault === undefined) return [];
      // The payer of a session may try again.
      const kind = isStored ? 'payment.failed' : 'payment.attempt_failed';
      return [{ kind, payment, reason: reasonOf(fault.code, fault.decline_code) }];
    }
    default:
      return [];
  }
}

/** Pure. What a SetupIntent says; undefined where it is none. */
export function setupFacts(object: unknown): Facts | undefined {
  const setup = read(Setup, object);
  if (setup === undefined) return undefined;
  const paymentId = setup.metadata?.paymentId;
  const method = methodOf(setup);
  if (paymentId === undefined || method === undefined || setup.status !== 'succeeded') return [];
  return [{ kind: 'method.stored', payment: { paymentId }, method }];
}

/** Pure. What a Refund says, whoever made it; undefined where it is none. */
export function refundFacts(object: unknown): Facts | undefined {
  const refund = readRefund(object);
  const money = refund === undefined ? undefined : moneyOf(refund.amount, refund.currency);
  if (refund === undefined || money === undefined) return undefined;
  const chargeRef = linkOf(refund.payment_intent);
  const refundId = refund.metadata?.refundId;
  const reference = {
    refundRef: refund.id,
    ...(chargeRef === undefined ? {} : { chargeRef }),
    ...(refundId === undefined ? {} : { refundId }),
  };
  if (refund.status === 'succeeded') return [{ kind: 'refund.succeeded', refund: reference, money }];
  const isOver = refund.status === 'failed' || refund.status === 'canceled';
  return isOver ? [{ kind: 'refund.failed', refund: reference, money }] : [];
}

/** Pure. What a Dispute says; undefined where it is none. */
export function disputeFacts(object: unknown): Facts | undefined {
  const dispute = read(Dispute, object);
  const money = dispute === undefined ? undefined : moneyOf(dispute.amount, dispute.currency);
  if (dispute === undefined || money === undefined) return undefined;
  const chargeRef = linkOf(dispute.payment_intent);
  if (chargeRef === undefined) return [];
  // An inquiry (`warning_…`) takes no money.
  if (dispute.status.startsWith('warning')) return [];
  const kind = dispute.status === 'won' || dispute.status === 'lost' ? dispute.status : 'opened';
  return [{ kind: `dispute.${kind}`, payment: { chargeRef }, disputeRef: dispute.id, money }];
}

/** Pure. Why a card was declined, by Stripe's codes (docs.stripe.com/declines/codes). */
export function reasonOf(code: string | undefined, declineCode: string | undefined): RefusalReason {
  const codes = [declineCode, code];
  if (codes.includes('authentication_required')) return 'authentication_required';
  if (codes.includes('insufficient_funds')) return 'insufficient_funds';
  if (codes.includes('expired_card')) return 'card_expired';
  return 'declined';
}

/** A method is charged together with its customer: `cus_…/pm_…`. */
function methodOf({ customer, payment_method: method }: Pick<Static<typeof Setup>, 'customer' | 'payment_method'>) {
  const [customerId, methodId] = [linkOf(customer), linkOf(method)];
  if (customerId === undefined || methodId === undefined) return undefined;
  return { token: `${customerId}/${methodId}` } satisfies StoredMethod;
}

/** Pure. The two ids of a token; both are empty where it is none of ours. */
export function partsOf({ token }: StoredMethod): { readonly customer: string; readonly method: string } {
  const [customer = '', method = ''] = token.split('/');
  return { customer, method };
}

function moneyOf(amount: number | null, currency: string | null): Money | undefined {
  return amount === null || currency === null ? undefined : fromStripeAmount(amount, currency);
}

function linkOf(link: Static<typeof Link> | undefined): string | undefined {
  if (link === null || link === undefined) return undefined;
  return typeof link === 'string' ? link : link.id;
}

function read<Schema extends TSchema>(schema: Schema, object: unknown): Static<Schema> | undefined {
  return Value.Check(schema, object) ? object : undefined;
}
