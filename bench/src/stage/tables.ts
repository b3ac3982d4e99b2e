import { Client } from 'pg';
import type { Statement } from '../load/tasks.ts';

/** A connection to the tables of a service, for what no load is made of. */
export type Tables = Client & AsyncDisposable;

/** @param schema the name of the service. */
export async function connectToTables(databaseUrl: string, schema: string): Promise<Tables> {
  const client = new Client({ connectionString: databaseUrl, options: `-c search_path=${schema}` });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

interface RowChoice {
  readonly table: string;
  /** SQL that names one row. */
  readonly where: string;
  /** Values in place of the row's, by column. */
  readonly replaced: Readonly<Record<string, string>>;
}

/**
 * The INSERT of a row that is there, with all of its columns, to be made again and again.
 *
 * @throws Error where there is no such row.
 */
export async function insertOf(tables: Tables, { table, where, replaced }: RowChoice): Promise<Statement> {
  const { rows: columns } = await tables.query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'NO' ORDER BY ordinal_position`,
    [table],
  );
  const names = columns.map(({ name }) => name);
  const { rows } = await tables.query<Record<string, string | null>>(
    `SELECT ${names.map((name) => `${name}::text`).join(', ')} FROM ${table} WHERE ${where} LIMIT 1`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error(`${table} has no row where ${where}`);
  return {
    text: `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
    values: names.map((name) => replaced[name] ?? row[name] ?? null),
  };
}
