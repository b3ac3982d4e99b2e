import { randomUUID } from 'node:crypto';
import { createPool, inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { runAtPace } from './pace.ts';
import type { LoadResult, Statement, TransactionTask } from './tasks.ts';

/** Runs a {@link TransactionTask}. One that is not committed counts as no answer. */
export async function runTransactionLoad(task: TransactionTask): Promise<LoadResult> {
  const { databaseUrl: url, schema, transactions, connections, pace } = task;
  const pool = createPool({ url, schema, maxConnections: connections, log: createLogger('load', 'fatal') });
  const send = async (): Promise<number | 'none'> => {
    const ids: string[] = [];
    try {
      for (const statements of transactions) await commit(pool, statements, ids);
      return 200;
    } catch {
      return 'none';
    }
  };
  try {
    return await runAtPace(
      pace,
      Array.from({ length: connections }, () => send),
    );
  } finally {
    await pool.end();
  }
}

async function commit(pool: Pool, statements: readonly Statement[], ids: string[]): Promise<void> {
  const [first, second] = statements;
  if (first === undefined) return;
  if (second === undefined) {
    await pool.query(first.text, valuesOf(first, ids));
    return;
  }
  await inTransaction(pool, async (client) => {
    for (const statement of statements) await client.query(statement.text, valuesOf(statement, ids));
  });
}

/** @param ids those of the request; what is missing is added. */
function valuesOf({ values }: Statement, ids: string[]): (string | null)[] {
  return values.map((value) => value?.replaceAll(/\{(\d+)(x?)\}/g, idAt) ?? null);

  function idAt(_all: string, place: string, asBytes: string): string {
    const id = (ids[Number(place)] ??= randomUUID());
    return asBytes === '' ? id : `\\x${id.replaceAll('-', '')}`;
  }
}
