import type { Stripe } from 'stripe';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Settlement, SettlementLine } from '../../domain/ports.ts';
import { unknownLookup } from '../call.ts';
import { fromStripeAmount } from './amounts.ts';
import { readList } from './objects.ts';
import { attempt } from './outcomes.ts';

const PAGE = 100;
/** It keeps a list that repeats itself from never ending. */
const MOST_PAGES = 10_000;

interface SettlementRange {
  readonly from: Date;
  /** Not in it any more. */
  readonly to: Date;
}

const Source = Type.Object({
  payment_intent: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  metadata: Type.Optional(Type.Object({ paymentId: Type.Optional(Type.String()) })),
});

const Transaction = Type.Object({
  id: Type.String(),
  type: Type.String(),
  created: Type.Integer(),
  amount: Type.Integer(),
  fee: Type.Integer(),
  net: Type.Integer(),
  currency: Type.String(),
  source: Type.Optional(Type.Union([Type.String(), Type.Null(), Source])),
});

const KINDS: Readonly<Record<string, SettlementLine['kind']>> = {
  charge: 'payment',
  payment: 'payment',
  refund: 'refund',
  payment_refund: 'refund',
};

/** The balance transactions of a time, in the currency that Stripe settles in. */
export async function fetchSettlement(stripe: Stripe, range: SettlementRange, now: Date): Promise<Settlement> {
  const params = { created: { gte: seconds(range.from), lt: seconds(range.to) }, limit: PAGE, expand: ['data.source'] };
  const lines: SettlementLine[] = [];
  let last: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const next = last === undefined ? params : { ...params, starting_after: last };
    const tried = await attempt(() => stripe.balanceTransactions.list(next), 'not_accepted', now);
    if (tried.kind === 'none') return unknownLookup(tried.result);
    const entries = tried.kind === 'object' ? readList(tried.object) : undefined;
    const transactions = entries?.filter((entry) => Value.Check(Transaction, entry)) ?? [];
    const found = transactions.map(lineOf).filter((line) => line !== undefined);
    if (entries === undefined || found.length < entries.length) return { found: 'unknown' };
    lines.push(...found);
    if (entries.length < PAGE) return { found: 'lines', lines };
    last = transactions.at(-1)?.id;
  }
  return { found: 'unknown' };
}

function lineOf(transaction: Static<typeof Transaction>): SettlementLine | undefined {
  const { type, created, currency, source } = transaction;
  const [gross, fee, net] = [transaction.amount, -transaction.fee, transaction.net].map((amount) =>
    fromStripeAmount(amount, currency),
  );
  if (gross === undefined || fee === undefined || net === undefined) return undefined;
  const link = typeof source === 'object' && source !== null ? source : undefined;
  const paymentId = link?.metadata?.paymentId;
  return {
    kind: KINDS[type] ?? 'other',
    at: new Date(created * 1000),
    currency: gross.currency,
    gross: gross.amount,
    fee: fee.amount,
    net: net.amount,
    ...(typeof link?.payment_intent === 'string' ? { chargeRef: link.payment_intent } : {}),
    ...(paymentId === undefined ? {} : { paymentId }),
  };
}

function seconds(at: Date): number {
  return Math.ceil(at.getTime() / 1000);
}
