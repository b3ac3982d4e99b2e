import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Owner } from '../../domain/owner.ts';
import { changePlanOf } from '../domain/plan-changes.ts';
import type { PlanChoice, SubscriptionStore } from '../domain/subscriptions.ts';
import { holdCustomer } from './customer-rows.ts';
import { issueCreditNote } from './invoice-changes.ts';
import { findInvoice, instantOf } from './invoice-rows.ts';
import { endUnsettled } from './settlement.ts';
import { tellOf, tellOfChange } from './subscription-events.ts';
import { writeMetadata } from './subscription-metadata.ts';
import {
  findSubscription,
  insertSubscription,
  lockSubscription,
  recordOf,
  SUBSCRIPTION_TABLE,
  type SubscriptionRow,
  updateSubscription,
} from './subscription-rows.ts';
import { cancelNow, type StepDeps, takeStep } from './subscription-steps.ts';

export interface SubscriptionTableDeps extends StepDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  /** A subscription has something to do now. */
  readonly onDue: () => void;
}

export function createSubscriptionTable(deps: SubscriptionTableDeps): SubscriptionStore {
  return { ...readingOf(deps), ...changingOf(deps) };
}

function readingOf({ pool, vault }: SubscriptionTableDeps): Pick<SubscriptionStore, 'find' | 'list'> {
  return {
    find: (id, owner) => findSubscription(pool(), vault, { id, owner }),
    async list({ owner, customerId, state, page }) {
      const { rows, ...rest } = await readNewest<SubscriptionRow>(pool(), {
        table: SUBSCRIPTION_TABLE,
        columns: '*',
        where: `($1::text IS NULL OR subject = $1) AND ($2::uuid IS NULL OR customer_id = $2)
          AND ($3::text IS NULL OR state = $3)`,
        parameters: [owner, customerId, state],
        page,
      });
      return { rows: rows.map((row) => recordOf(vault, row)), ...rest };
    },
  };
}

function changingOf(deps: SubscriptionTableDeps): Omit<SubscriptionStore, 'find' | 'list'> {
  const { pool, vault, recordEvents, onDue } = deps;

  /** Runs `work` while nobody else changes the subscription. */
  async function locked<T>(id: string, work: (client: PoolClient) => Promise<T>): Promise<T> {
    return inTransaction(pool(), async (client) => {
      await lockSubscription(client, id);
      return work(client);
    });
  }

  return {
    async create(record) {
      const { id } = record.subscription;
      const made = await inTransaction(pool(), async (client) => {
        const isNew = await insertSubscription(client, vault, record);
        if (isNew) {
          await holdCustomer(client, record.customerId);
          await tellOf(client, recordEvents, { record, type: 'subscription.created' });
        }
        return findSubscription(client, vault, { id, owner: undefined });
      });
      if (made === undefined) throw new Error('The subscription that was made is gone');
      onDue();
      return made;
    },
    async change(id, owner, decide) {
      const changed = await locked(id, async (client) => {
        const record = await findSubscription(client, vault, { id, owner });
        if (record === undefined) return undefined;
        const after = decide(record);
        if (after === record) return record;
        await updateSubscription(client, after);
        if (after.metadata !== record.metadata) await writeMetadata(client, vault, after);
        await tellOfChange(client, recordEvents, { before: record, after });
        return after;
      });
      onDue();
      return changed;
    },
    async changePlan(id, owner, choice) {
      const changed = await locked(id, (client) => writePlan(client, deps, { id, owner, choice }));
      onDue();
      return changed;
    },
    async cancel(id, owner) {
      return locked(id, async (client) => {
        const before = await findSubscription(client, vault, { id, owner });
        if (before === undefined || before.subscription.state === 'cancelled') return before;
        const after = await cancelNow(client, deps, before);
        await updateSubscription(client, after);
        await tellOfChange(client, recordEvents, { before, after });
        return after;
      });
    },
    endCharge: (id, end) =>
      locked(id, async (client) => {
        const record = await findSubscription(client, vault, { id, owner: undefined });
        if (record !== undefined) await endUnsettled(client, deps, { record, ...end });
      }),
    step: (id) =>
      locked(id, async (client) => {
        const before = await findSubscription(client, vault, { id, owner: undefined });
        if (before === undefined) return { kind: 'wait' };
        const { next, after } = await takeStep(client, deps, before);
        if (after !== undefined) await tellOfChange(client, recordEvents, { before, after });
        return next;
      }),
    async putOff(id, ms) {
      await pool().query('UPDATE subscriptions SET due_at = now() + make_interval(secs => $2) WHERE id = $1', [
        id,
        ms / 1000,
      ]);
    },
  };
}

interface PlanWish {
  readonly id: string;
  readonly owner: Owner;
  readonly choice: PlanChoice;
}

async function writePlan(client: PoolClient, deps: SubscriptionTableDeps, { id, owner, choice }: PlanWish) {
  const record = await findSubscription(client, deps.vault, { id, owner });
  if (record === undefined) return undefined;
  const invoice = await newestInvoice(client, deps, id);
  const seller = deps.sellerOf(record.subject);
  const { record: after, note } = changePlanOf(record, { choice, invoice, seller, now: instantOf(deps.clock.now()) });
  await updateSubscription(client, after);
  if (note !== undefined && invoice !== undefined) await issueCreditNote(client, deps, { invoice, note });
  await tellOfChange(client, deps.recordEvents, { before: record, after });
  return findSubscription(client, deps.vault, { id, owner });
}

async function newestInvoice(client: PoolClient, { sealer }: SubscriptionTableDeps, subscriptionId: string) {
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM invoices WHERE subscription_id = $1 ORDER BY period_start DESC LIMIT 1`,
    [subscriptionId],
  );
  const [row] = rows;
  return row === undefined ? undefined : findInvoice(client, sealer, { id: row.id, owner: undefined, isLocked: true });
}
