import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import { paymentError } from '../../domain/errors.ts';
import { isRefundable, movePayment } from '../../domain/payment-states.ts';
import type { ProviderName } from '../../domain/ports.ts';
import {
  balanceAfter,
  isOpenRefund,
  type RefundState,
  refundable,
  refundTable,
  reserveRefund,
} from '../../domain/refunds.ts';
import { move } from '../../domain/transitions.ts';
import { planChange } from '../domain/changes.ts';
import { entryOf } from '../domain/entries.ts';
import { changeOfExcess } from '../domain/facts.ts';
import type { Snapshot } from '../domain/payments.ts';
import type { NewRefund, Refund, RefundChange, RefundFact, RefundStore } from '../domain/refunds.ts';
import { lockPayment } from './locked-payment.ts';
import { refundContext } from './payment-rows.ts';
import { type PaymentTableDeps, writeChange } from './write-payment.ts';

interface RefundRow {
  readonly id: string;
  readonly payment_id: string;
  readonly subject: string;
  readonly amount: string;
  readonly currency: string;
  readonly state: RefundState;
  readonly failure: string | null;
  readonly sealed: Buffer;
  readonly refund_ref: string | null;
  readonly called_at: Date | null;
  readonly calls: number;
  readonly decision: 'succeeded' | 'failed' | null;
  readonly accepted_at: Date | null;
  readonly refunded_before: string;
  readonly look_ups: number;
  readonly last_look_up_at: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const COLUMNS = `id, payment_id, subject, amount, currency, state, failure, sealed, refund_ref, called_at, calls,
  decision, accepted_at, refunded_before, look_ups, last_look_up_at, created_at, updated_at`;

const UNIQUE_VIOLATION = '23505';

export function createRefundTable(deps: PaymentTableDeps): RefundStore {
  const { pool, vault } = deps;
  return {
    async find(id) {
      const { rows } = await pool().query<RefundRow>(`SELECT ${COLUMNS} FROM refunds WHERE id = $1`, [id]);
      return rows.map((row) => refundOf(vault, row))[0];
    },
    async list({ owner, paymentId, status, page }) {
      const { rows, ...rest } = await readNewest<RefundRow>(pool(), {
        table: 'refunds',
        columns: COLUMNS,
        where: `($1::text IS NULL OR subject = $1) AND ($2::text IS NULL OR state = $2)
          AND ($3::uuid IS NULL OR payment_id = $3)`,
        parameters: [owner, status, paymentId],
        page,
      });
      return { rows: rows.map((row) => refundOf(vault, row)), ...rest };
    },
    reserve: (order) => inTransaction(pool(), (client) => reserve(deps, client, order)),
    async beginCall(refund, call) {
      try {
        return await inTransaction(pool(), (client) => beginCall(deps, client, { refund, ...call }));
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === UNIQUE_VIOLATION) return undefined;
        throw error;
      }
    },
    async withdrawCall(id, retryAt) {
      await pool().query(
        `UPDATE refunds SET called_at = NULL, calls = calls - 1, due_at = $2, updated_at = now()
         WHERE id = $1 AND state IN ('pending', 'processing') AND accepted_at IS NULL`,
        [id, retryAt],
      );
    },
    change: (id, decide) => inTransaction(pool(), (client) => changeRefund(deps, client, { id, decide })),
    match: (provider, fact) => matchRefund(pool(), provider, fact),
    async putOff(id, until, wasLookedUp) {
      await pool().query(
        `UPDATE refunds SET due_at = $2, look_ups = look_ups + $3::int,
           last_look_up_at = CASE WHEN $3::int = 1 THEN now() ELSE last_look_up_at END
         WHERE id = $1 AND state IN ('pending', 'processing')`,
        [id, until, wasLookedUp ? 1 : 0],
      );
    },
  };
}

/** The row of the payment is locked meanwhile, and no longer: two refunds never take more than is left (case A12). */
async function reserve(
  { vault }: PaymentTableDeps,
  client: PoolClient,
  { id, paymentId, amount, reason, actor }: NewRefund,
): Promise<Refund | undefined> {
  const snapshot = await lockPayment(client, vault, paymentId);
  const { rows: known } = await client.query<RefundRow>(`SELECT ${COLUMNS} FROM refunds WHERE id = $1`, [id]);
  if (known.length > 0) return known.map((row) => refundOf(vault, row))[0];
  if (snapshot === undefined || !isRefundable(snapshot.payment.state)) return undefined;
  const { payment } = snapshot;
  const reservation = reserveRefund(payment.balance, amount);
  if (reservation.kind === 'exceeds') return undefined;
  await client.query('UPDATE payments SET reserved = $2, updated_at = now() WHERE id = $1', [
    paymentId,
    reservation.balance.reserved.toString(),
  ]);
  await client.query(
    `INSERT INTO payment_events (payment_id, event, source, from_state, to_state, actor)
     VALUES ($1, 'refund_asked', 'caller', $2, $2, $3)`,
    [paymentId, payment.state, actor],
  );
  const { rows } = await client.query<RefundRow>(
    `INSERT INTO refunds (id, payment_id, subject, amount, currency, state, sealed, due_at)
     VALUES ($1, $2, $3, $4, $5, 'pending', $6, now() + interval '1 minute') RETURNING ${COLUMNS}`,
    [
      id,
      paymentId,
      payment.subject,
      reservation.amount.toString(),
      payment.money.currency,
      sealedText(vault, id, { reason }),
    ],
  );
  return rows.map((row) => refundOf(vault, row))[0];
}

interface BegunCall {
  readonly refund: Refund;
  readonly isKeyed: boolean;
}

/** By the lock of the payment what was refunded before is known, and stays so until the call is written down. */
async function beginCall({ vault }: PaymentTableDeps, client: PoolClient, { refund, isKeyed }: BegunCall) {
  const { id, paymentId, calls, calledAt } = refund;
  const snapshot = await lockPayment(client, vault, paymentId);
  if (snapshot === undefined || !isRefundable(snapshot.payment.state)) return undefined;
  const { rows } = await client.query<RefundRow>(
    `UPDATE refunds SET calls = calls + 1, refunded_before = $4, is_told_by_sums = NOT $5, updated_at = now(),
       due_at = GREATEST(due_at, now() + interval '1 minute'),
       called_at = CASE WHEN $5 THEN COALESCE(called_at, now()) ELSE now() END,
       look_ups = CASE WHEN $5 THEN look_ups ELSE 0 END,
       last_look_up_at = CASE WHEN $5 THEN last_look_up_at END
     WHERE id = $1 AND calls = $2 AND (called_at IS NULL) = $3 AND accepted_at IS NULL
       AND state IN ('pending', 'processing') RETURNING ${COLUMNS}`,
    [id, calls, calledAt === undefined, snapshot.payment.balance.refunded.toString(), isKeyed],
  );
  return rows.map((row) => refundOf(vault, row))[0];
}

interface RefundMove {
  readonly id: string;
  readonly decide: (refund: Refund) => RefundChange | undefined;
}

/** The payment is locked first, as by every change of one. */
async function changeRefund(deps: PaymentTableDeps, client: PoolClient, { id, decide }: RefundMove): Promise<Refund> {
  const { rows: found } = await client.query<{ payment_id: string }>('SELECT payment_id FROM refunds WHERE id = $1', [
    id,
  ]);
  const snapshot = await lockPayment(client, deps.vault, found[0]?.payment_id ?? id);
  const { rows } = await client.query<RefundRow>(`SELECT ${COLUMNS} FROM refunds WHERE id = $1 FOR UPDATE`, [id]);
  const [row] = rows;
  if (row === undefined || snapshot === undefined) throw new Error('The refund is gone');
  const refund = refundOf(deps.vault, row);
  const change = decide(refund);
  if (change === undefined) return refund;
  const transition = move(refundTable, refund.state, change.event);
  const to = transition.kind === 'moved' ? transition.to : refund.state;
  if (transition.kind === 'refused') throw paymentError('CONFLICT', { details: { status: refund.state } });
  // What had failed holds nothing of the payment: so much may not be left.
  if (
    refund.state === 'failed' &&
    to === 'needs_review' &&
    refund.money.amount > refundable(snapshot.payment.balance)
  ) {
    const excess = changeOfExcess(snapshot, refund, change);
    const planned = excess && planChange(snapshot, excess, deps.lateCapture);
    if (excess !== undefined && planned !== undefined) await writeChange(deps, client, { told: excess, planned });
    return refund;
  }
  const { resolution } = change;
  const isDecided = change.event === 'resolved_succeeded' || change.event === 'resolved_failed';
  const { rows: updated } = await client.query<RefundRow>(
    `UPDATE refunds SET state = $2, failure = $3, refund_ref = COALESCE($4, refund_ref),
       accepted_at = CASE WHEN $5 THEN COALESCE(accepted_at, now()) ELSE accepted_at END,
       due_at = CASE WHEN $6 THEN due_at END, decision = COALESCE($7, decision), sealed = $8, updated_at = now()
     WHERE id = $1 RETURNING ${COLUMNS}`,
    [
      id,
      to,
      transition.kind === 'moved' ? change.failure : refund.failure,
      change.refundRef,
      change.isAccepted === true,
      isOpenRefund(to),
      isDecided ? to : undefined,
      sealedText(deps.vault, id, { reason: refund.reason, resolution: resolution ?? refund.resolution }),
    ],
  );
  if (to !== refund.state && to !== 'processing') {
    await writeMove(deps, client, { snapshot, refund, to, change });
  }
  return updated.map((each) => refundOf(deps.vault, each))[0] ?? refund;
}

interface MovedRefund {
  readonly snapshot: Snapshot;
  /** Before. */
  readonly refund: Refund;
  readonly to: RefundState;
  readonly change: RefundChange;
}

async function writeMove(deps: PaymentTableDeps, client: PoolClient, moved: MovedRefund): Promise<void> {
  const { snapshot, refund, to, change } = moved;
  const { payment, disputes } = snapshot;
  const { id, subject, paymentId, money } = refund;
  const balance = balanceAfter(payment.balance, { amount: money.amount, from: refund.state, to });
  const isRefunded = to === 'succeeded';
  const isDisputed = disputes.some((dispute) => dispute.state === 'open');
  const { transition } = movePayment({ state: payment.state, balance, isDisputed }, 'refunded', deps.lateCapture);
  // Of what is paid, the balance says how much went back, also where less did than it seemed.
  const isByBalance = isRefunded || isRefundable(payment.state) || payment.state === 'refunded';
  const state = isByBalance && transition.kind === 'moved' ? transition.to : payment.state;
  // The payer's bank has sent it back.
  const isReturned = refund.state === 'succeeded';
  const kinds = [...(isRefunded ? (['refund'] as const) : []), ...(isReturned ? (['refund_returned'] as const) : [])];
  // It had gone out before, and had come back.
  const cause = change.event === 'resolved_succeeded' ? `${id}:decided` : id;
  await writeChange(deps, client, {
    told: {
      event: isRefunded ? 'refunded' : `refund_${to}`,
      source: change.source,
      reason: change.failure,
      actor: change.actor,
    },
    planned: {
      payment: { ...payment, balance, state },
      movedFrom: state === payment.state ? undefined : payment.state,
      charges: [],
      replaced: undefined,
      returns: [],
      back: 0n,
      disputes: [],
      entries: kinds.map((kind) => entryOf(payment, kind, { cause, money })),
      method: undefined,
      refund: 0n,
    },
  });
  const data = { id, paymentId, amount: Number(money.amount), currency: money.currency, status: to };
  await deps.recordEvents(client, [{ subject, type: `refund.${to}`, resourceId: paymentId, data }]);
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function matchRefund(
  pool: Pool,
  provider: ProviderName,
  { refund, money }: RefundFact,
): Promise<string | undefined> {
  const { refundId, refundRef, chargeRef } = refund;
  const ids = async (where: string, parameters: readonly unknown[]): Promise<string | undefined> => {
    const { rows } = await pool.query<{ id: string }>(
      `SELECT refunds.id FROM refunds JOIN payments ON payments.id = refunds.payment_id
       WHERE payments.provider = $1 AND ${where} ORDER BY refunds.created_at LIMIT 1`,
      [provider, ...parameters],
    );
    return rows[0]?.id;
  };
  const byId = refundId !== undefined && UUID.test(refundId) ? await ids('refunds.id = $2', [refundId]) : undefined;
  const byReference = byId ?? (refundRef === undefined ? undefined : await ids('refunds.refund_ref = $2', [refundRef]));
  if (byReference !== undefined || chargeRef === undefined) return byReference;
  // Without our id it is the one of the same amount of the charge that is not over.
  return ids(
    `payments.charge_ref = $2 AND refunds.amount = $3 AND refunds.refund_ref IS NULL
     AND refunds.called_at IS NOT NULL AND refunds.state IN ('pending', 'processing')`,
    [chargeRef, money.amount.toString()],
  );
}

/** What people wrote of it. */
type RefundText = Partial<Pick<Refund, 'resolution'>> & Pick<Refund, 'reason'>;

/** What people wrote of a refund, sealed. */
export function sealedText(vault: Vault, id: string, text: RefundText): Buffer {
  return vault.seal(JSON.stringify(text), refundContext(id));
}

function refundOf(vault: Vault, row: RefundRow): Refund {
  const { reason, resolution }: RefundText = JSON.parse(vault.open(row.sealed, refundContext(row.id)).toString());
  return {
    id: row.id,
    paymentId: row.payment_id,
    subject: row.subject,
    money: { amount: BigInt(row.amount), currency: row.currency },
    state: row.state,
    failure: row.failure ?? undefined,
    reason,
    resolution,
    refundRef: row.refund_ref ?? undefined,
    calledAt: row.called_at ?? undefined,
    calls: row.calls,
    decision: row.decision ?? undefined,
    acceptedAt: row.accepted_at ?? undefined,
    refundedBefore: BigInt(row.refunded_before),
    lookUps: row.look_ups,
    lastLookUpAt: row.last_look_up_at ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
