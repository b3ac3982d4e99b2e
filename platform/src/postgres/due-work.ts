import { errorMessage } from '../errors.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import { sleep } from '../retry.ts';
import { isDatabaseUnavailable, type Pool } from './pool.ts';

const POLL_MS = 1000;
/** Places that become free meanwhile are filled by one statement. */
const GATHER_MS = 10;
const STOP_GRACE_MS = 10_000;

export interface DueRowsOptions {
  readonly pool: Pool;
  /** Has `id uuid`, and `due_at timestamptz` with an index: when it is next worked on; null: never. */
  readonly table: string;
  /** Of the rows taken, separated by commas. */
  readonly columns: string;
  /** Which of the rows, in SQL, without parameters; all when absent. */
  readonly where?: string;
  /** Longer than the work on a row takes: nobody else gets it meanwhile. */
  readonly leaseSeconds: number;
  readonly limit: number;
}

/**
 * Takes rows that are due, the longest waiting first, by putting them off: whoever dies with one
 * leaves it due again when the lease ends. What the work then changes has to ask in the same
 * statement whether the row still is what it was. Times are those of the database.
 */
export async function takeDueRows<Row extends object>(options: DueRowsOptions): Promise<readonly Row[]> {
  const { pool, table, columns, where = 'TRUE', leaseSeconds, limit } = options;
  const { rows } = await pool.query<Row>(
    `UPDATE ${table} SET due_at = now() + make_interval(secs => $1)
     WHERE id IN (SELECT id FROM ${table} WHERE due_at <= now() AND ${where} ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING ${columns}`,
    [leaseSeconds, limit],
  );
  return rows;
}

export interface DueWorkOptions<Item> {
  /** In the plural, for logs. */
  readonly name: string;
  /** @param limit how many at most. */
  readonly take: (limit: number) => Promise<readonly Item[]>;
  /** @param signal aborts when the process can wait no longer; the work then ends soon. */
  readonly work: (item: Item, signal: AbortSignal) => Promise<void>;
  /** How many at a time. */
  readonly concurrency: number;
  /** Between two looks where nothing was due; a second when absent. */
  readonly pollMs?: number;
  readonly log: Logger;
}

/** Works on what is due, some at a time, in every replica (docs/decisions/0335). */
export interface DueWork extends Actor {
  /** Something may be due now. */
  wake(): void;
}

export function createDueWork<Item>(options: DueWorkOptions<Item>): DueWork {
  const { name, take, work, concurrency, pollMs = POLL_MS, log } = options;
  const stopping = new AbortController();
  const cutOff = new AbortController();
  const running = new Set<Promise<void>>();
  let loop: Promise<void> | undefined;
  let awake = Promise.withResolvers<void>();

  async function run(item: Item): Promise<void> {
    try {
      await work(item, cutOff.signal);
    } catch (err) {
      // The row is due again when its lease ends.
      if (isDatabaseUnavailable(err)) log.warn({ message: errorMessage(err), work: name }, 'work was interrupted');
      else log.error({ err, work: name }, 'work failed');
    }
  }

  function begin(item: Item): void {
    const ended = run(item).then(() => void running.delete(ended));
    running.add(ended);
  }

  /** @returns whether there may be more. */
  async function takeSome(): Promise<boolean> {
    const free = concurrency - running.size;
    try {
      const items = await take(free);
      for (const item of items) begin(item);
      return items.length === free;
    } catch (err) {
      const level = isDatabaseUnavailable(err) ? 'warn' : 'error';
      log[level]({ message: errorMessage(err), work: name }, 'what is due could not be taken');
      return false;
    }
  }

  async function loopUntilStopped(): Promise<void> {
    while (!stopping.signal.aborted) {
      awake = Promise.withResolvers();
      const mayBeMore = await takeSome();
      if (!mayBeMore) await Promise.race([awake.promise, sleep(pollMs, stopping.signal)]);
      else if (running.size >= concurrency) {
        await Promise.race(running);
        await sleep(GATHER_MS, stopping.signal);
      }
    }
  }

  return {
    name,
    wake: () => awake.resolve(),
    async start() {
      loop ??= loopUntilStopped();
    },
    async stop() {
      stopping.abort();
      await loop;
      const timer = setTimeout(() => cutOff.abort(), STOP_GRACE_MS);
      await Promise.all(running);
      clearTimeout(timer);
    },
  };
}
