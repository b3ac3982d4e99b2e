import { errorMessage } from '../errors.ts';
import { inTransaction, type Pool } from '../postgres/pool.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import { sleep } from '../retry.ts';

const POLL_MS = 250;
const BATCH = 500;
const KEPT_DAYS = 30;

/**
 * Gives committed events that have none their positions, and to the webhooks that want them: those of a resource in the order in which
 * they were written. One replica at a time does so, so that positions are committed in their order:
 * whoever has read up to one has missed nothing before it (docs/decisions/0372).
 *
 * @returns how many; none where another replica is at it.
 */
export async function placeEvents(pool: Pool, limit = BATCH): Promise<number> {
  const { rowCount } = await pool.query('SELECT FROM events WHERE position IS NULL LIMIT 1');
  if (rowCount === 0) return 0;
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query('SELECT FROM event_relay FOR UPDATE SKIP LOCKED');
    if (rows.length === 0) return 0;
    // A statement of its own: it sees what the one who held the row before has committed.
    const placed = await client.query<{ count: number }>(
      `WITH waiting AS (
         SELECT number FROM events WHERE position IS NULL ORDER BY number LIMIT $1
       ), placed AS (
         UPDATE events SET position = last_position + place
         FROM (SELECT number, row_number() OVER (ORDER BY number) AS place FROM waiting) places, event_relay
         WHERE events.number = places.number
         RETURNING events.id, subject, type
       ), moved AS (
         UPDATE event_relay SET last_position = last_position + (SELECT count(*) FROM placed)
       ), addressed AS (
         INSERT INTO webhook_deliveries (subject, endpoint_id, event_id, event_type)
         SELECT placed.subject, endpoint.id, placed.id, type
         FROM placed JOIN webhook_endpoints endpoint
           ON endpoint.subject = placed.subject AND disabled_reason IS NULL AND EXISTS (
             SELECT FROM unnest(event_types) AS wanted
             WHERE wanted = type OR (wanted LIKE '%*' AND starts_with(type, left(wanted, -1))))
       )
       SELECT count(*)::int AS count FROM placed`,
      [limit],
    );
    return placed.rows[0]?.count ?? 0;
  });
}

/** Forgets events after 30 days. @param limit how many at most. @returns how many. */
export async function pruneEvents(pool: Pool, limit: number): Promise<number> {
  const { rowCount } = await pool.query(
    `DELETE FROM events WHERE number IN (
       SELECT number FROM events
       WHERE number <= (SELECT max(number) FROM (SELECT number FROM events ORDER BY number LIMIT $1) AS oldest)
         AND created_at < now() - make_interval(days => $2) AND position IS NOT NULL
       ORDER BY number FOR UPDATE SKIP LOCKED)`,
    [limit, KEPT_DAYS],
  );
  return rowCount ?? 0;
}

export interface EventRelayOptions {
  /** Throws until the schema is up to date. */
  readonly pool: () => Pool;
  /** Called with the last position there is, where it is another than before. */
  readonly onPosition: (position: bigint) => Promise<void>;
  readonly log: Logger;
}

/** Gives events their positions, and looks for those that others gave, four times a second in every replica. */
export function createEventRelay({ pool, onPosition, log }: EventRelayOptions): Actor {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let known: string | undefined;

  async function look(): Promise<void> {
    while ((await placeEvents(pool())) === BATCH);
    const { rows } = await pool().query<{ position: string }>('SELECT last_position AS position FROM event_relay');
    const position = rows[0]?.position;
    if (position === undefined || position === known) return;
    await onPosition(BigInt(position));
    known = position;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await look().catch((error: unknown) =>
        log.warn({ message: errorMessage(error) }, 'events could not be passed on'),
      );
      await sleep(POLL_MS, stopping.signal);
    }
  }

  return {
    name: 'event-relay',
    async start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
