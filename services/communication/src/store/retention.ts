import type { Pool } from '@rollcall/platform/postgres/pool.ts';

export interface RetentionOptions {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  /** What messages say is kept for so long. */
  readonly contentDays: number;
  /** Messages are kept for so long. */
  readonly messageDays: number;
}

/** Providers repeat what they report for three days at most. */
const NOTIFICATION_DAYS = 30;

/** Forgets what is old. Each takes how many at most, and gives how many. */
export interface Retention {
  readonly contents: (limit: number) => Promise<number>;
  readonly messages: (limit: number) => Promise<number>;
  readonly notifications: (limit: number) => Promise<number>;
}

/** What is still to be sent is kept, however old it is. */
export function createRetention({ pool, contentDays, messageDays }: RetentionOptions): Retention {
  const run = async (sql: string, days: number, limit: number) => {
    const { rowCount } = await pool().query(sql, [days, limit]);
    return rowCount ?? 0;
  };
  return {
    contents: (limit) =>
      run(
        `UPDATE messages SET content = NULL WHERE id IN (
           SELECT id FROM messages
           WHERE content IS NOT NULL AND due_at IS NULL AND created_at < now() - make_interval(days => $1)
           ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
        contentDays,
        limit,
      ),
    messages: (limit) =>
      run(
        `WITH old AS (
           DELETE FROM messages WHERE id IN (
             SELECT id FROM messages WHERE due_at IS NULL AND created_at < now() - make_interval(days => $1)
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
           RETURNING subject, tags, created_at, id),
         untagged AS (
           DELETE FROM message_tags WHERE (subject, tag, created_at, id) IN (
             SELECT subject, unnest(tags), created_at, id FROM old))
         SELECT FROM old`,
        messageDays,
        limit,
      ),
    notifications: (limit) =>
      run(
        `DELETE FROM notifications WHERE id IN (
           SELECT id FROM notifications WHERE received_at < now() - make_interval(days => $1)
           ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
        NOTIFICATION_DAYS,
        limit,
      ),
  };
}
