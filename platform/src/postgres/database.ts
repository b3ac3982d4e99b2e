import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import { backoffMs, sleep } from '../retry.ts';
import { migrate } from './migrate.ts';
import { createPool, DatabaseNotReadyError, type Pool } from './pool.ts';

const RETRY = { baseMs: 500, maxMs: 5000 };
const PROBE_INTERVAL_MS = 5000;

export interface DatabaseOptions {
  /** For what needs the database. */
  readonly pool: Pool;
  /** Of the same database. */
  readonly url: string;
  /** Of the pool's search path. */
  readonly schema: string;
  /** Directories, as {@link migrate} takes them. */
  readonly migrations: readonly string[];
  readonly log: Logger;
}

/** Brings the schema up to date as soon as the database answers, and keeps an eye on it. */
export interface Database extends Actor {
  readonly connected: () => boolean;
  /** @throws DatabaseNotReadyError until the schema is up to date. */
  readonly pool: () => Pool;
}

/**
 * Starting it never fails: what needs no database works on without. It looks over a connection of
 * its own: a pool whose connections are all at work says nothing bad of the database.
 */
export function createDatabase({ pool, url, schema, migrations, log }: DatabaseOptions): Database {
  const own = createPool({ url, schema, maxConnections: 1, log });
  const stopping = new AbortController();
  const firstAttempt = Promise.withResolvers<void>();
  let connected = false;
  let migrated = false;
  let running: Promise<void> | undefined;

  async function check(): Promise<void> {
    try {
      // A database that did not answer may have come back as an older copy of itself, or empty.
      if (connected) await own.query('SELECT 1');
      else await migrate({ pool: own, schema, directories: migrations, log });
      if (!connected) log.info({}, 'database connected');
      connected = true;
      migrated = true;
    } catch (err) {
      log.warn({ err }, 'the database cannot be used');
      connected = false;
    }
  }

  async function run(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; ) {
      await check();
      firstAttempt.resolve();
      failures = connected ? 0 : failures + 1;
      await sleep(connected ? PROBE_INTERVAL_MS : backoffMs(failures, RETRY), stopping.signal);
    }
  }

  return {
    name: 'database',
    start() {
      running ??= run();
      return firstAttempt.promise;
    },
    async stop() {
      stopping.abort();
      await running;
      await own.end();
    },
    connected: () => connected,
    pool() {
      if (!migrated) throw new DatabaseNotReadyError();
      return pool;
    },
  };
}
