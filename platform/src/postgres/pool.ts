import { Pool as PgPool, type PoolClient as PgPoolClient } from 'pg';
import type { Logger } from '../process/log.ts';

export type Pool = PgPool;
export type PoolClient = PgPoolClient;

export interface PoolOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** Tables live in this schema; it is created by the migrations. */
  readonly schema: string;
  readonly maxConnections: number;
  readonly log: Logger;
}

const CONNECT_TIMEOUT_MS = 3000;
const STATEMENT_TIMEOUT_MS = 10_000;
const TRANSACTION_TIMEOUT_MS = 30_000;
/**
 * Longer than the server's own limit, so that it strikes only when the server no longer answers at
 * all.
 */
const ANSWER_TIMEOUT_MS = 12_000;

/**
 * A connection pool whose queries see `schema` first. A connection lost while idle is logged, not
 * thrown.
 */
export function createPool({ url, schema, maxConnections, log }: PoolOptions): Pool {
  const pool = new PgPool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    // A replica that is cut off in the midst of a transaction must not keep its locks from the
    // others.
    idle_in_transaction_session_timeout: TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    options: `-c search_path=${schema}`,
  });
  pool.on('error', (err) => log.warn({ err }, 'an idle database connection was lost'));
  // A server that ends just as the connection was made says so in the same packet, before whoever
  // waits for the connection can listen; without a listener that would end the process. The query
  // that is tried on it fails as well.
  pool.on('connect', (client) => {
    client.on('error', (err) => log.debug({ err }, 'a database connection was lost'));
  });
  return pool;
}

/** Runs `work` in one transaction: all of it is kept, or nothing. */
export async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error) => {
    broken = error;
  };
  // A connection that is lost also says so by an event, and one that nobody listens to would end
  // the process.
  client.on('error', onError);
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/**
 * SQLSTATE classes of a server that is unavailable, overloaded, starting or stopping (PostgreSQL
 * manual, appendix A).
 */
const UNAVAILABLE_STATES = /^(08|53|57P|57014)/;
const UNAVAILABLE_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN']);
/** What pg says without a code. */
const UNAVAILABLE_MESSAGES =
  /connection terminated|not queryable|timeout exceeded when trying to connect|connection timeout|query read timeout/i;

/** The database has not been reached yet, or its schema is not up to date. */
export class DatabaseNotReadyError extends Error {
  constructor() {
    super('The database has not been reached yet, or its schema is not up to date');
    this.name = 'DatabaseNotReadyError';
  }
}

/**
 * Whether the database could not be reached or cannot serve now, so that the same query may succeed
 * later.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseNotReadyError) return true;
  if (error instanceof AggregateError) return error.errors.some(isDatabaseUnavailable);
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return UNAVAILABLE_CODES.has(code) || UNAVAILABLE_STATES.test(code) || UNAVAILABLE_MESSAGES.test(error.message);
}
