import type { Logger } from '../process/log.ts';
import { type BlindIndex, type Vault, VaultError } from '../vault.ts';
import { isTwin } from './index-anew.ts';
import { inTransaction, type Pool, type PoolClient } from './pool.ts';

/** A column that finds rows by what is sealed in another one. */
interface SealedIndex {
  readonly column: string;
  readonly index: BlindIndex;
  /** The sealed column that has the text. */
  readonly of: string;
  /** @returns undefined where the row has no such text. */
  readonly textOf: (opened: string) => string | undefined;
  /** The other columns with which it is unique; absent: it is not. */
  readonly uniqueWith?: readonly string[];
  /** Of a row that is there under both keys: whether the older is forgotten, or keeps its index. */
  readonly isTwinForgotten?: boolean;
}

/** A table with a column `id uuid` that names its rows, and with columns of sealed bytes. */
export interface SealedTable {
  readonly table: string;
  /** By column, what the bytes of a row are sealed for. */
  readonly sealed: Readonly<Record<string, (id: string) => string>>;
  readonly indexes?: readonly SealedIndex[];
}

export interface ResealingOptions {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  readonly tables: readonly SealedTable[];
  readonly log: Logger;
}

/** Rows whose locks are held at a time: for milliseconds. */
const BATCH = 50;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';
/** Lets triggers know that a row says what it said (services/payment/migrations). */
const RESEALING = 'rollcall.resealing';

interface Row {
  readonly id: string;
  readonly [column: string]: unknown;
}

/**
 * Seals what older keys of the vault have sealed with the newest, and indexes it anew, table after table.
 *
 * @returns what does so for some rows, and says for how many; fewer than asked for: all tables have been gone through.
 */
export function createResealing({ pool, vault, tables, log }: ResealingOptions): (limit: number) => Promise<number> {
  let at = { table: 0, afterId: FIRST_ID };
  let resealed = 0;
  let unopened = 0;

  /** @returns how many rows were looked at. */
  async function resealBatch(table: SealedTable, afterId: string): Promise<readonly Row[]> {
    const results = await inTransaction(pool(), async (client) => {
      await client.query('SELECT set_config($1, $2, true)', [RESEALING, 'on']);
      const rows = await oldRows(client, { table, afterId, head: vault.head });
      const isDone: boolean[] = [];
      for (const row of rows) isDone.push(await reseal(client, vault, { table, row }));
      return { rows, isDone };
    });
    resealed += results.isDone.filter(Boolean).length;
    unopened += results.isDone.filter((isDone) => !isDone).length;
    return results.rows;
  }

  function endPass(): void {
    if (unopened > 0) log.error({ unopened }, 'rows are sealed with keys that are not in the file of the vault');
    else log.info({ resealed }, 'all rows are sealed with the newest key of the vault');
    at = { table: 0, afterId: FIRST_ID };
    resealed = 0;
    unopened = 0;
  }

  return async (limit) => {
    let looked = 0;
    while (looked < limit) {
      const table = tables[at.table];
      if (table === undefined) {
        endPass();
        return looked;
      }
      const rows = await resealBatch(table, at.afterId);
      looked += rows.length;
      const last = rows.at(-1);
      at = last === undefined ? { table: at.table + 1, afterId: FIRST_ID } : { ...at, afterId: last.id };
    }
    return limit;
  };
}

interface OldRows {
  readonly table: SealedTable;
  readonly afterId: string;
  /** Of what the newest key seals. */
  readonly head: Buffer;
}

async function oldRows(
  client: PoolClient,
  { table: { table, sealed }, afterId, head }: OldRows,
): Promise<readonly Row[]> {
  const columns = Object.keys(sealed);
  const isOld = columns.map((column) => `substring(${column} FROM 1 FOR ${head.length}) <> $2`).join(' OR ');
  const { rows } = await client.query<Row>(
    `SELECT id, ${columns.join(', ')} FROM ${table} WHERE id > $1 AND (${isOld}) ORDER BY id LIMIT $3 FOR UPDATE`,
    [afterId, head, BATCH],
  );
  return rows;
}

interface RowOfTable {
  readonly table: SealedTable;
  readonly row: Row;
}

/** @returns whether its key is known. */
async function reseal(client: PoolClient, vault: Vault, { table, row }: RowOfTable): Promise<boolean> {
  const opened = openedOf(vault, { table, row });
  if (opened === undefined) return false;
  const values = new Map<string, Buffer>();
  for (const [column, plain] of opened) {
    const contextOf = table.sealed[column];
    if (contextOf !== undefined) values.set(column, vault.seal(plain, contextOf(row.id)));
  }
  for (const each of table.indexes ?? []) {
    const plain = opened.get(each.of);
    const text = plain === undefined ? undefined : each.textOf(plain.toString());
    if (text === undefined) continue;
    const index = each.index.of(text);
    const hasTwin = await isThereTwice(client, { table: table.table, id: row.id, each, index });
    if (hasTwin && each.isTwinForgotten === true) {
      await client.query(`DELETE FROM ${table.table} WHERE id = $1`, [row.id]);
      return true;
    }
    if (!hasTwin) values.set(each.column, index);
  }
  const columns = [...values.keys()].map((column, position) => `${column} = $${position + 2}`);
  await client.query(`UPDATE ${table.table} SET ${columns.join(', ')} WHERE id = $1`, [row.id, ...values.values()]);
  return true;
}

function openedOf(vault: Vault, { table, row }: RowOfTable): ReadonlyMap<string, Buffer> | undefined {
  try {
    return new Map(
      Object.entries(table.sealed).flatMap(([column, contextOf]) => {
        const sealed = row[column];
        return Buffer.isBuffer(sealed) ? [[column, vault.open(sealed, contextOf(row.id))] as const] : [];
      }),
    );
  } catch (error) {
    if (error instanceof VaultError) return undefined;
    throw error;
  }
}

interface Twin {
  readonly table: string;
  readonly id: string;
  readonly each: SealedIndex;
  readonly index: Buffer;
}

async function isThereTwice(client: PoolClient, { table, id, each, index }: Twin): Promise<boolean> {
  const { column, uniqueWith } = each;
  if (uniqueWith === undefined) return false;
  const { rowCount } = await client.query(
    `SELECT FROM ${table} AS old, ${table} AS twin
     WHERE old.id = $1 AND twin.id <> old.id AND twin.${column} = $2 AND ${isTwin(uniqueWith)} LIMIT 1`,
    [id, index],
  );
  return rowCount !== 0;
}
