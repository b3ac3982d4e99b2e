import type { Clock } from '@rollcall/platform/clock.ts';
import { isStandardSignedWith, signStandard } from '@rollcall/platform/webhooks/signatures.ts';
import { type Static, Type } from 'typebox';
import { isCurrency } from '../domain/money.ts';
import { NotificationError } from '../domain/notification-error.ts';
import type {
  Money,
  PaymentProvider,
  ProviderFact,
  RawNotification,
  StoredCharge,
  StoredMethod,
} from '../domain/ports.ts';
import { readJson } from './call.ts';

/** Long enough for the inbox, and no longer: nobody keeps such a notification. */
const TOLERANCE_MS = 5 * 60 * 1000;
/** Of a method whose charges are declined. */
const DECLINING = 'sandbox-declining:';

export interface SandboxSettings {
  readonly isProduction: boolean;
  /** Signs what the page decides. A secret. */
  readonly secret: string;
}

/** What the payer chose on our page; `pay-then-decline` keeps a method whose charges are declined. */
export type SandboxDecision = 'pay' | 'pay-then-decline' | 'decline' | 'cancel';

const Decided = Type.Object({
  paymentId: Type.String({ minLength: 1, maxLength: 255 }),
  decision: Type.Enum(['pay', 'pay-then-decline', 'decline', 'cancel']),
  /** Minor units, in digits. */
  amount: Type.String({ pattern: '^\\d{1,18}$' }),
  currency: Type.String(),
  keepsMethod: Type.Boolean(),
});

/**
 * A provider of our own, for trying out: the page with Pay and Decline decides, and says so by a
 * notification like any other's. It keeps nothing, so what is asked twice is answered the same.
 *
 * @throws Error in production.
 */
export function createSandbox(settings: SandboxSettings, clock: Clock): PaymentProvider {
  if (settings.isProduction) throw new Error('the provider sandbox takes no money and is refused in production');
  return {
    name: 'sandbox',
    repeatable: new Set(['checkout', 'charge', 'refund']),
    rejectionsOf: ({ currency }) => (isCurrency(currency) ? [] : [{ code: 'CURRENCY_NOT_SUPPORTED', currencies: [] }]),
    createCheckout: async ({ paymentId }) => ({
      outcome: 'accepted',
      value: { checkoutRef: paymentId, redirect: { kind: 'sandbox-page' } },
    }),
    async lookUp({ paymentId, money, method }) {
      if (method === undefined) return { found: 'open' };
      return { found: 'facts', facts: [chargeFact(paymentId, money, method)] };
    },
    refund: async ({ refundId }) => ({ outcome: 'accepted', value: { refundRef: refundId, isSettled: true } }),
    lookUpRefund: async () => ({ found: 'absent' }),
    stored: {
      charge: async (charge) => outcomeOfCharge(charge),
      forget: async ({ token }) => ({ outcome: 'accepted', value: token }),
    },
    verify: async (notification) => ({ eventKey: verifyDecision(notification, settings, clock.now()), warnings: [] }),
    readFacts: (body) => factsOf(parseDecision(body)),
  };
}

interface DecidedPayment {
  readonly paymentId: string;
  readonly money: Money;
  readonly decision: SandboxDecision;
  readonly keepsMethod: boolean;
}

/** The notification by which our page tells what the payer chose, signed by Standard Webhooks. */
export function sandboxNotification(settings: SandboxSettings, decided: DecidedPayment, now: Date): RawNotification {
  const { paymentId, money, decision, keepsMethod } = decided;
  const fields = { paymentId, decision, amount: `${money.amount}`, currency: money.currency, keepsMethod };
  const body = Buffer.from(JSON.stringify(fields));
  const id = `${paymentId}:${decision}`;
  const timestamp = `${Math.floor(now.getTime() / 1000)}`;
  const signature = signStandard(settings.secret, { id, timestamp, body });
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return { headers, body, remoteAddress: undefined };
}

function verifyDecision({ headers, body }: RawNotification, { secret }: SandboxSettings, now: Date): string {
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '', 'webhook-signature': signature = '' } = headers;
  const isFresh = Math.abs(Number(timestamp) * 1000 - now.getTime()) <= TOLERANCE_MS;
  if (!isFresh || !isStandardSignedWith(secret, { id, timestamp, body }, signature)) {
    throw new NotificationError('FORGED', 'The decision of the sandbox is not signed');
  }
  const { paymentId, decision } = parseDecision(body);
  return `${paymentId}:${decision}`;
}

function parseDecision(body: Buffer): Static<typeof Decided> {
  const decided = readJson(Decided, body.toString('utf8'));
  if (decided === undefined) throw new NotificationError('MALFORMED', 'The decision of the sandbox cannot be read');
  return decided;
}

function factsOf({ paymentId, decision, amount, currency, keepsMethod }: Static<typeof Decided>): ProviderFact[] {
  const payment = { paymentId, checkoutRef: paymentId };
  if (decision === 'decline') return [{ kind: 'payment.failed', payment, reason: 'declined' }];
  if (decision === 'cancel') return [{ kind: 'payment.cancelled', payment }];
  const token = `${decision === 'pay' ? 'sandbox:' : DECLINING}${paymentId}`;
  return [
    {
      kind: 'payment.succeeded',
      payment: { ...payment, chargeRef: chargeRefOf(paymentId) },
      money: { amount: BigInt(amount), currency },
      fee: 0n,
      ...(keepsMethod ? { method: { token } } : {}),
    },
  ];
}

function chargeFact(paymentId: string, money: Money, method: StoredMethod): ProviderFact {
  const payment = { paymentId, chargeRef: chargeRefOf(paymentId), token: method.token };
  if (method.token.startsWith(DECLINING)) return { kind: 'payment.failed', payment, reason: 'declined' };
  return { kind: 'payment.succeeded', payment, money, fee: 0n };
}

function outcomeOfCharge({ paymentId, method }: StoredCharge) {
  if (method.token.startsWith(DECLINING)) return { outcome: 'refused', reason: 'declined' } as const;
  return { outcome: 'accepted', value: { chargeRef: chargeRefOf(paymentId), isSettled: true } } as const;
}

function chargeRefOf(paymentId: string): string {
  return `sandbox:${paymentId}`;
}
