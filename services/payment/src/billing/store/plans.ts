import { isDeepStrictEqual } from 'node:util';
import { isUuid } from '@rollcall/platform/http/resources.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { IntervalUnit } from '../../domain/calendar.ts';
import type { TaxBehavior } from '../../domain/invoices.ts';
import type { PlanStore, PlanTerms, StoredPlan } from '../domain/plans.ts';

/** Of `plan_versions`. */
interface TermsRow {
  readonly name: string;
  readonly amount: string;
  readonly currency: string;
  readonly interval_unit: IntervalUnit;
  readonly interval_count: number;
  readonly trial_days: number;
  readonly tax_rate: number;
  readonly tax_behavior: TaxBehavior;
}

interface Row extends TermsRow {
  readonly id: string;
  readonly subject: string;
  readonly active: boolean;
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const TERMS = 'name, amount, currency, interval_unit, interval_count, trial_days, tax_rate, tax_behavior';
const COLUMNS = `id, subject, active, version, created_at, updated_at, ${TERMS}`;
/** Each plan with its newest version. */
const CURRENT = `(SELECT plans.*, ${TERMS} FROM plans JOIN plan_versions
  ON plan_versions.plan_id = plans.id AND plan_versions.version = plans.version) AS current`;

/** @param pool throws while the schema is not there yet. */
export function createPlanTable(pool: () => Pool): PlanStore {
  return {
    create: ({ id, subject, terms }) =>
      inTransaction(pool(), async (client) => {
        const { rowCount } = await client.query(
          'INSERT INTO plans (id, subject, version) VALUES ($1, $2, 1) ON CONFLICT (id) DO NOTHING',
          [id, subject],
        );
        if (rowCount === 1) await insertVersion(client, { id, version: 1, terms });
        const plan = await find(client, id, undefined);
        if (plan === undefined) throw new Error('The plan that was made is gone');
        return plan;
      }),
    find: (id, owner) => find(pool(), id, owner),
    async list({ owner, active, page }) {
      const { rows, ...rest } = await readNewest<Row>(pool(), {
        table: CURRENT,
        columns: COLUMNS,
        where: '($1::text IS NULL OR subject = $1) AND ($2::boolean IS NULL OR active = $2)',
        parameters: [owner, active],
        page,
      });
      return { rows: rows.map(planOf), ...rest };
    },
    update: (id, owner, change) =>
      inTransaction(pool(), async (client) => {
        await client.query('SELECT FROM plans WHERE id = $1 FOR UPDATE', [id]);
        const plan = await find(client, id, owner);
        if (plan === undefined) return undefined;
        const terms = change.terms(plan.terms);
        const isSame = isDeepStrictEqual(terms, plan.terms);
        const version = isSame ? plan.version : plan.version + 1;
        if (!isSame) await insertVersion(client, { id, version, terms });
        await client.query('UPDATE plans SET version = $2, active = $3, updated_at = now() WHERE id = $1', [
          id,
          version,
          change.active ?? plan.active,
        ]);
        return find(client, id, owner);
      }),
  };
}

async function find(client: Pool | PoolClient, id: string, owner: string | undefined): Promise<StoredPlan | undefined> {
  if (!isUuid(id)) return undefined;
  const { rows } = await client.query<Row>(
    `SELECT ${COLUMNS} FROM ${CURRENT} WHERE id = $1 AND ($2::text IS NULL OR subject = $2)`,
    [id, owner],
  );
  return rows.map(planOf)[0];
}

async function insertVersion(
  client: PoolClient,
  { id, version, terms }: Pick<StoredPlan, 'id' | 'version' | 'terms'>,
): Promise<void> {
  const { name, amount, currency, interval, trialDays, taxRate, taxBehavior } = terms;
  await client.query(
    `INSERT INTO plan_versions (plan_id, version, ${TERMS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [id, version, name, amount, currency, interval.unit, interval.count, trialDays, taxRate, taxBehavior],
  );
}

function planOf(row: Row): StoredPlan {
  const { id, subject, active, version, created_at: createdAt, updated_at: updatedAt } = row;
  return { id, subject, active, version, terms: termsOf(row), createdAt, updatedAt };
}

function termsOf(row: TermsRow): PlanTerms {
  return {
    name: row.name,
    amount: BigInt(row.amount),
    currency: row.currency,
    interval: { unit: row.interval_unit, count: row.interval_count },
    trialDays: row.trial_days,
    taxRate: BigInt(row.tax_rate),
    taxBehavior: row.tax_behavior,
  };
}
