import { strict } from '@rollcall/platform/http/resources.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { type Static, Type } from 'typebox';
import { paymentError, refusals } from '../domain/errors.ts';
import type { PaymentProvider, ProviderName } from '../domain/ports.ts';
import { compareSettlements, type SettledMoney, type Span, settledBy } from '../domain/settlement-check.ts';
import { DAY_MS, Day, spanOf } from './days.ts';

const MOST_DAYS = 31;

const Money = Type.Object({
  kind: Type.Enum(['payment', 'refund']),
  chargeRef: Type.String({ description: "The provider's id of the charge" }),
  paymentId: Type.Union([Type.String(), Type.Null()]),
  amount: Type.Integer({ description: 'In minor units; what went back is negative' }),
  currency: Type.String(),
  at: Type.String(),
});

const Query = Type.Object(
  { provider: Type.Enum(['payfast', 'yoco', 'stripe', 'sandbox']), from: Day, to: Day },
  strict,
);

export interface SettlementCheckDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly find: (name: ProviderName) => PaymentProvider | undefined;
}

/**
 * Compares the books with the provider's own list. An account at a provider is of all subjects: the
 * scope is that of who sees all.
 */
export function settlementCheckRoute({ pool, find }: SettlementCheckDeps): Routes {
  return (app) => {
    app.get(
      '/reports/settlement-check',
      {
        schema: {
          tags: ['ledger'],
          summary: "What the books of some days and the provider's own list do not both have",
          querystring: Query,
          response: {
            200: Type.Object({
              matched: Type.Integer(),
              missingHere: Type.Array(Money),
              missingAtProvider: Type.Array(Money),
            }),
          },
        },
        config: { refuses: refusals('PROVIDER_NOT_CONFIGURED', 'SETTLEMENT_NOT_LISTED', 'PROVIDER_ERROR') },
      },
      async (request) => {
        const { provider: name, from, to } = request.query;
        const span = spanOf(from, to, MOST_DAYS);
        const provider = find(name);
        if (provider === undefined) throw paymentError('PROVIDER_NOT_CONFIGURED', { details: { providers: [] } });
        const wide = { from: new Date(span.from.getTime() - DAY_MS), to: new Date(span.to.getTime() + DAY_MS) };
        const listed = await listOf(provider, wide);
        const differences = compareSettlements(listed, await booksOf(pool(), name, wide), span);
        const { matched, missingHere, missingAtProvider } = differences;
        return { matched, missingHere: missingHere.map(answer), missingAtProvider: missingAtProvider.map(answer) };
      },
    );
  };
}

/** @throws ServiceError where the provider has no list, or does not give it now. */
async function listOf(provider: PaymentProvider, { from, to }: Span): Promise<readonly SettledMoney[]> {
  const settlement = await provider.settlement?.(from, to);
  if (settlement === undefined) throw paymentError('SETTLEMENT_NOT_LISTED');
  if (settlement.found === 'lines') return settledBy(settlement.lines);
  const { retryAfterMs = 1000 } = settlement;
  throw paymentError('PROVIDER_ERROR', { headers: { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) } });
}

interface Row {
  readonly kind: SettledMoney['kind'];
  readonly charge_ref: string;
  readonly payment_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly at: Date;
}

/** What was booked of a provider, when it was told of. */
async function booksOf(pool: Pool, provider: ProviderName, { from, to }: Span): Promise<readonly SettledMoney[]> {
  const { rows } = await pool.query<Row>(
    `SELECT 'payment' AS kind, charge_ref, payment_id, amount, currency, created_at AS at
     FROM charges WHERE provider = $1 AND is_booked AND amount > 0 AND created_at >= $2 AND created_at < $3
     UNION ALL
     SELECT 'refund', charge_ref, payments.id, -refunds.amount, refunds.currency, refunds.updated_at
     FROM refunds JOIN payments ON payments.id = payment_id
     WHERE provider = $1 AND refunds.state = 'succeeded' AND refunds.updated_at >= $2 AND refunds.updated_at < $3
     UNION ALL
     SELECT 'refund', charge_ref, payments.id, -returns.amount, returns.currency, returns.created_at
     FROM returns JOIN payments ON payments.id = payment_id
     WHERE returns.provider = $1 AND is_booked AND returns.created_at >= $2 AND returns.created_at < $3`,
    [provider, from, to],
  );
  return rows.map(({ charge_ref: chargeRef, payment_id: paymentId, amount, ...row }) => ({
    ...row,
    chargeRef,
    paymentId,
    amount: BigInt(amount),
  }));
}

function answer({ amount, at, paymentId, ...money }: SettledMoney): Static<typeof Money> {
  return { ...money, paymentId: paymentId ?? null, amount: Number(amount), at: at.toISOString() };
}
