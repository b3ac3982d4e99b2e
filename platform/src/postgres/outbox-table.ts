import type { OutboxState } from '../queues/outbox-states.ts';
import type { Pool } from './pool.ts';

/** A message as the outbox needs it. */
export interface OutboxMessage {
  readonly id: string;
  readonly state: OutboxState;
  /** Of the queue's job that sends it; another one when it is sent anew. */
  readonly queueId: string;
}

/** What becomes of a message after an attempt. */
interface SettledAttempt {
  readonly state: OutboxState;
  readonly result: string;
  readonly at: Date;
}

/** A message that no job of the queue will send. */
export interface StrandedMessage {
  readonly id: string;
  readonly queueId: string;
  readonly lane: string;
  /** The queue's job is there and has ended: its last attempt was cut short. */
  readonly ended: boolean;
}

/** The messages of an outbox. */
export interface OutboxTable<Message extends OutboxMessage> {
  find(id: string): Promise<Message | undefined>;
  /** Counts an attempt, unless the message was sent anew or is done. */
  settle(message: Pick<OutboxMessage, 'id' | 'queueId'>, attempt: SettledAttempt): Promise<void>;
  /** Pending ones that no job of the queue in this schema will send. */
  stranded(queue: { readonly schema: string; readonly name: string }, limit: number): Promise<StrandedMessage[]>;
  /**
   * Forgets what has been delivered, or given up, for so many days.
   *
   * @param limit how many at most, so that it ends soon.
   * @returns how many.
   */
  prune(old: { readonly state: 'delivered' | 'dead'; readonly days: number }, limit: number): Promise<number>;
}

export interface OutboxTableOptions<Row, Message> {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  /**
   * Name of the table. It has the columns id, state, attempts, last_attempt_at, last_result, lane,
   * queue_id and created_at. What has the same lane goes to the same host.
   */
  readonly table: string;
  /** What {@link OutboxTableOptions.toMessage} needs, separated by commas. */
  readonly columns: string;
  readonly toMessage: (row: Row) => Message;
}

/** The part of an outbox that is the same for all messages, whatever else is in their table. */
export function outboxTable<Row extends object, Message extends OutboxMessage>(
  options: OutboxTableOptions<Row, Message>,
): OutboxTable<Message> {
  const { pool, table, columns, toMessage } = options;
  return {
    async find(id) {
      const { rows } = await pool().query<Row>(`SELECT ${columns} FROM ${table} WHERE id = $1`, [id]);
      const [row] = rows;
      return row === undefined ? undefined : toMessage(row);
    },
    async settle({ id, queueId }, { state, result, at }) {
      await pool().query(
        `UPDATE ${table} SET state = $3, attempts = attempts + 1, last_attempt_at = $4, last_result = $5
         WHERE id = $1 AND queue_id = $2 AND state = 'pending'`,
        [id, queueId, state, at, result],
      );
    },
    async stranded({ schema, name }, limit) {
      const { rows } = await pool().query<StrandedRow>(
        `SELECT m.id, m.queue_id, m.lane, q.id IS NOT NULL AS ended
         FROM ${table} m LEFT JOIN ${schema}.job q ON q.name = $1 AND q.id = m.queue_id
         WHERE m.state = 'pending' AND (q.id IS NULL OR q.state NOT IN ('created', 'retry', 'active'))
         ORDER BY m.created_at LIMIT $2`,
        [name, limit],
      );
      return rows.map((row) => ({ id: row.id, queueId: row.queue_id, lane: row.lane, ended: row.ended }));
    },
    async prune({ state, days }, limit) {
      // Rows that another replica is just deleting are left to it. Without the second condition an
      // index that has none that are pending could not serve a state that is a parameter.
      const { rowCount } = await pool().query(
        `DELETE FROM ${table} WHERE id IN (
           SELECT id FROM ${table}
           WHERE state = $1 AND state <> 'pending'
             AND coalesce(last_attempt_at, created_at) < now() - make_interval(days => $2)
           ORDER BY coalesce(last_attempt_at, created_at) LIMIT $3 FOR UPDATE SKIP LOCKED)`,
        [state, days, limit],
      );
      return rowCount ?? 0;
    },
  };
}

interface StrandedRow {
  readonly id: string;
  readonly queue_id: string;
  readonly lane: string;
  readonly ended: boolean;
}
