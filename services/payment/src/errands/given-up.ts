import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { ProviderName } from '../domain/ports.ts';
import type { Errand } from './queue.ts';

/** An errand that its provider has not run for two weeks. What it is about is a secret. */
interface GivenUpErrand {
  readonly id: string;
  readonly provider: ProviderName;
  readonly kind: Errand['kind'];
  /** Why the provider did not run it, the last time; null: an older version has not kept it. */
  readonly reason: string | null;
  readonly attempts: number;
  readonly createdAt: Date;
}

/** Errands that wait for a person. */
export interface GivenUpErrands {
  /** Newest first. */
  list(page: ListPage): Promise<NewestPage<GivenUpErrand>>;
  /** Has it run once more, or leaves it: it is gone then. @returns false: there is none. */
  resolve(id: string, outcome: 'again' | 'done'): Promise<boolean>;
}

interface Row extends Omit<GivenUpErrand, 'createdAt'> {
  readonly created_at: Date;
}

/** @param pool throws while the schema is not there yet. */
export function createGivenUpErrands(pool: () => Pool): GivenUpErrands {
  return {
    async list(page) {
      const { rows, ...rest } = await readNewest<Row>(pool(), {
        table: 'errands',
        columns: 'id, provider, kind, reason, attempts, created_at',
        where: 'due_at IS NULL',
        parameters: [],
        page,
      });
      return { rows: rows.map(({ created_at: createdAt, ...row }) => ({ ...row, createdAt })), ...rest };
    },
    async resolve(id, outcome) {
      const change = outcome === 'again' ? 'UPDATE errands SET due_at = now()' : 'DELETE FROM errands';
      const { rowCount } = await pool().query(`${change} WHERE id = $1 AND due_at IS NULL`, [id]);
      return rowCount === 1;
    },
  };
}
