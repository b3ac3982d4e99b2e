import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { IntervalUnit } from '../../domain/calendar.ts';
import type { TaxBehavior } from '../../domain/invoices.ts';
import type { Owner } from '../../domain/owner.ts';
import type { ProviderName } from '../../domain/ports.ts';
import type { OpenInvoice, Plan, Subscription } from '../../domain/subscriptions.ts';
import type { SubscriptionRecord } from '../domain/subscriptions.ts';
import { instantOf } from './invoice-rows.ts';
import { openedMetadata, sealedMetadata } from './subscription-metadata.ts';

interface PlanRow {
  readonly name: string;
  /** A number in JSON: it is at most 10^12. */
  readonly amount: string | number;
  readonly currency: string;
  readonly interval_unit: IntervalUnit;
  readonly interval_count: number;
  readonly tax_rate: number;
  readonly tax_behavior: TaxBehavior;
}

/** Of a subscription with its version of the plan; dates as text. */
export interface SubscriptionRow extends PlanRow {
  readonly id: string;
  readonly subject: string;
  readonly customer_id: string;
  readonly plan_id: string;
  readonly plan_version: number;
  readonly pending_plan_id: string | null;
  readonly pending_plan_version: number | null;
  readonly pending_plan: PlanRow | null;
  readonly provider: ProviderName | null;
  readonly method_id: string | null;
  readonly setup_payment_id: string | null;
  readonly state: Subscription['state'];
  readonly collection: Subscription['collection'];
  readonly trial_end: string | null;
  readonly time_zone: string;
  readonly anchor: string;
  readonly next_index: number;
  readonly cancel_at_period_end: boolean;
  readonly pending_amount: string;
  readonly credit_balance: string;
  readonly open_key: string | null;
  readonly open_invoice_id: string | null;
  readonly open_due: string | null;
  readonly open_issued_at: Date | null;
  readonly open_attempts: number | null;
  readonly open_charge: OpenInvoice['charge'] | null;
  readonly open_failed_at: Date | null;
  readonly open_payment_id: string | null;
  readonly open_by_checkout: boolean;
  readonly sealed: Buffer | null;
  readonly created_at: Date;
  readonly cancelled_at: Date | null;
}

const PENDING_PLAN = `(SELECT to_jsonb(pending) FROM plan_versions AS pending
  WHERE pending.plan_id = pending_plan_id AND pending.version = pending_plan_version) AS pending_plan`;
const OWN = `id, subject, customer_id, subscriptions.plan_id, plan_version, pending_plan_id, pending_plan_version, provider, method_id, setup_payment_id, state,
  collection, trial_end::text AS trial_end, time_zone, anchor::text AS anchor, next_index, cancel_at_period_end,
  pending_amount, credit_balance, open_key, open_invoice_id, open_due, open_issued_at, open_attempts, open_charge,
  open_failed_at, open_payment_id, open_by_checkout, sealed, subscriptions.created_at, cancelled_at`;
const OF_PLAN = 'name, amount, currency, interval_unit, interval_count, tax_rate, tax_behavior';
export const SUBSCRIPTION_TABLE = `(SELECT ${OWN}, ${OF_PLAN}, ${PENDING_PLAN} FROM subscriptions JOIN plan_versions
  ON plan_versions.plan_id = subscriptions.plan_id AND version = plan_version) AS current`;

/** Nobody else changes it until the transaction ends. Before its invoice, and behind its payment. */
export async function lockSubscription(client: PoolClient, id: string): Promise<void> {
  await client.query('SELECT FROM subscriptions WHERE id = $1 FOR UPDATE', [id]);
}

export async function findSubscription(
  client: Pool | PoolClient,
  vault: Vault,
  { id, owner }: { readonly id: string; readonly owner: Owner },
): Promise<SubscriptionRecord | undefined> {
  const { rows } = await client.query<SubscriptionRow>(
    `SELECT * FROM ${SUBSCRIPTION_TABLE} WHERE id = $1 AND ($2::text IS NULL OR subject = $2)`,
    [id, owner],
  );
  return rows.map((row) => recordOf(vault, row))[0];
}

const WRITTEN = [
  'plan_id',
  'plan_version',
  'pending_plan_id',
  'pending_plan_version',
  'provider',
  'method_id',
  'setup_payment_id',
  'state',
  'collection',
  'trial_end',
  'time_zone',
  'anchor',
  'next_index',
  'cancel_at_period_end',
  'pending_amount',
  'credit_balance',
  'open_key',
  'open_invoice_id',
  'open_due',
  'open_issued_at',
  'open_attempts',
  'open_charge',
  'open_failed_at',
  'open_payment_id',
  'open_by_checkout',
  'cancelled_at',
] as const;

/** In the order of `WRITTEN`. */
function valuesOf(record: SubscriptionRecord): readonly unknown[] {
  const { subscription } = record;
  const { schedule, open } = subscription;
  return [
    record.planId,
    record.planVersion,
    record.pending?.planId,
    record.pending?.planVersion,
    record.provider,
    record.methodId,
    record.setupPaymentId,
    subscription.state,
    subscription.collection,
    record.trialEnd?.toString(),
    schedule.timeZone,
    schedule.anchor.toString(),
    subscription.nextIndex,
    subscription.cancelAtPeriodEnd,
    subscription.pendingAmount,
    subscription.creditBalance,
    open?.key,
    open === undefined ? undefined : record.openInvoiceId,
    open?.due,
    open?.issuedAt.toString(),
    open?.attempts,
    open?.charge,
    open?.failedAt?.toString(),
    open?.charge === 'unsettled' ? record.openPaymentId : undefined,
    open?.charge === 'unsettled' && record.isByCheckout,
    record.cancelledAt,
  ];
}

/** Writes a new one, which is due at once. @returns whether there was none with its id. */
export async function insertSubscription(
  client: PoolClient,
  vault: Vault,
  record: SubscriptionRecord,
): Promise<boolean> {
  const { subject, customerId, metadata, subscription } = record;
  const { id, createdAt } = subscription;
  const places = WRITTEN.map((_name, index) => `$${index + 6}`).join(', ');
  const { rowCount } = await client.query(
    `INSERT INTO subscriptions (id, subject, customer_id, created_at, sealed, due_at, ${WRITTEN.join(', ')})
     VALUES ($1, $2, $3, $4, $5, now(), ${places}) ON CONFLICT (id) DO NOTHING`,
    [id, subject, customerId, createdAt.toString(), sealedMetadata(vault, id, metadata), ...valuesOf(record)],
  );
  return rowCount === 1;
}

/**
 * Writes a record whose row the transaction has, but for its metadata.
 *
 * @param dueInSeconds when it is planned anew: at once when absent. Who goes on with it himself keeps
 * others from it meanwhile.
 */
export async function updateSubscription(
  client: PoolClient,
  record: SubscriptionRecord,
  dueInSeconds = 0,
): Promise<void> {
  const places = WRITTEN.map((name, index) => `${name} = $${index + 3}`).join(', ');
  await client.query(
    `UPDATE subscriptions SET ${places}, due_at = now() + make_interval(secs => $2), updated_at = now() WHERE id = $1`,
    [record.subscription.id, dueInSeconds, ...valuesOf(record)],
  );
}

export function recordOf(vault: Vault, row: SubscriptionRow): SubscriptionRecord {
  const { pending_plan_id: planId, pending_plan_version: planVersion } = row;
  return {
    subject: row.subject,
    customerId: row.customer_id,
    planId: row.plan_id,
    planVersion: row.plan_version,
    pending: planId === null || planVersion === null ? undefined : { planId, planVersion },
    provider: row.provider ?? undefined,
    methodId: row.method_id ?? undefined,
    setupPaymentId: row.setup_payment_id ?? undefined,
    trialEnd: row.trial_end === null ? undefined : Temporal.PlainDate.from(row.trial_end),
    openInvoiceId: row.open_invoice_id ?? undefined,
    openPaymentId: row.open_payment_id ?? undefined,
    isByCheckout: row.open_by_checkout,
    metadata: openedMetadata(vault, row),
    cancelledAt: row.cancelled_at ?? undefined,
    subscription: subscriptionOf(row),
  };
}

function subscriptionOf(row: SubscriptionRow): Subscription {
  const plan = planOf(row);
  return {
    id: row.id,
    state: row.state,
    plan,
    pendingPlan: row.pending_plan === null ? undefined : planOf(row.pending_plan),
    collection: row.collection,
    schedule: { anchor: Temporal.PlainDate.from(row.anchor), interval: plan.interval, timeZone: row.time_zone },
    nextIndex: row.next_index,
    open: openOf(row),
    cancelAtPeriodEnd: row.cancel_at_period_end,
    pendingAmount: BigInt(row.pending_amount),
    creditBalance: BigInt(row.credit_balance),
    createdAt: instantOf(row.created_at),
  };
}

function planOf(row: PlanRow): Plan {
  return {
    name: row.name,
    amount: BigInt(row.amount),
    currency: row.currency,
    interval: { unit: row.interval_unit, count: row.interval_count },
    taxRate: BigInt(row.tax_rate),
    taxBehavior: row.tax_behavior,
  };
}

function openOf(row: SubscriptionRow): OpenInvoice | undefined {
  const { open_key: key, open_due: due, open_issued_at: issuedAt, open_attempts: attempts, open_charge: charge } = row;
  if (key === null || due === null || issuedAt === null || attempts === null || charge === null) return undefined;
  const failedAt = row.open_failed_at === null ? undefined : instantOf(row.open_failed_at);
  return { key, due: BigInt(due), issuedAt: instantOf(issuedAt), attempts, charge, failedAt };
}
