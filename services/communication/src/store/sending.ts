import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import { takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { BegunAttempt, DueMessage, SendingStore } from '../domain/message-store.ts';
import { attemptMoves, messageMoves } from '../domain/states.ts';
import { changeMessage, recordState } from './message-changes.ts';
import { createMessageRows, MESSAGE_COLUMNS, type MessageRow } from './message-rows.ts';

export interface SendingTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  readonly recordEvents: RecordEvents;
}

/** From taking a row to writing its call down, which has a lease of its own. */
const LEASE_SECONDS = 30;

const DUE_COLUMNS = `id, subject, channel, state, category, envelope, provider, attempts, tried, pauses, lookups, begun_at,
  expires_at`;

type DueRow = Pick<MessageRow, 'id' | 'subject' | 'channel' | 'state' | 'category' | 'envelope' | 'provider'> & {
  readonly attempts: number;
  readonly tried: readonly string[];
  readonly pauses: number;
  readonly lookups: number;
  readonly begun_at: Date | null;
  readonly expires_at: Date;
};

type BegunRow = MessageRow & {
  readonly attempts: number;
  readonly deduplication_id: number;
  readonly content: Buffer | null;
};

export function createSendingTable({ pool, vault, recordEvents }: SendingTableDeps): SendingStore {
  const messages = createMessageRows(vault);
  const dueOf = ({ envelope, begun_at, expires_at, provider, ...row }: DueRow): DueMessage => ({
    ...row,
    envelope: messages.openEnvelope(row.id, envelope),
    provider: provider ?? undefined,
    begunAt: begun_at ?? undefined,
    expiresAt: expires_at,
  });
  const begunOf = ({ id, attempts, deduplication_id, content }: Omit<BegunRow, keyof MessageRow> & { id: string }) => ({
    number: attempts,
    deduplicationId: deduplication_id,
    content: content === null ? undefined : messages.openContent(id, content),
  });

  return {
    async take(channel, limit) {
      const rows = await takeDueRows<DueRow>({
        pool: pool(),
        table: 'messages',
        columns: DUE_COLUMNS,
        where: `channel = '${channel}'`,
        leaseSeconds: LEASE_SECONDS,
        limit,
      });
      return rows.map(dueOf);
    },
    async read(id) {
      const { rows } = await pool().query<BegunRow>(
        'SELECT id, attempts, deduplication_id, content FROM messages WHERE id = $1',
        [id],
      );
      return rows.map(begunOf)[0];
    },
    begin: (id, provider, leaseMs) =>
      inTransaction(pool(), async (client): Promise<BegunAttempt | undefined> => {
        const { from, to } = messageMoves.begun;
        const { rows } = await client.query<BegunRow>(
          `WITH begun AS (
             UPDATE messages SET state = $3, provider = $2, attempts = attempts + 1, begun_at = now(), lookups = 0,
               due_at = now() + make_interval(secs => $4::double precision / 1000)
             WHERE id = $1 AND state = ANY($5)
             RETURNING ${MESSAGE_COLUMNS}, attempts, deduplication_id, content),
           attempt AS (
             INSERT INTO attempts (message_id, number, provider, state) SELECT id, attempts, $2, 'begun' FROM begun)
           SELECT * FROM begun`,
          [id, provider, to, leaseMs, from],
        );
        const [row] = rows;
        if (row === undefined) return undefined;
        await recordState(client, recordEvents, row);
        return begunOf(row);
      }),
    change: (id, change) => inTransaction(pool(), (client) => changeMessage(client, recordEvents, { id, ...change })),
    finish: (id, { number, event, reason, providerId }, change) =>
      inTransaction(pool(), async (client) => {
        const { from, to } = attemptMoves[event];
        await client.query(
          // A report may have ended it before the answer came, which has the provider's id.
          `UPDATE attempts SET provider_id = coalesce($5, provider_id), ended_at = coalesce(ended_at, now()),
             state = CASE WHEN state = ANY($6) THEN $3 ELSE state END,
             reason = CASE WHEN state = ANY($6) THEN $4 ELSE reason END
           WHERE message_id = $1 AND number = $2`,
          [id, number, to, reason, providerId, from],
        );
        // A call that was accepted proves that the message is sent, whatever was begun after it.
        const guard = change.event === 'accepted' ? {} : { attempt: number };
        return changeMessage(client, recordEvents, { id, ...change, ...guard });
      }),
    async putOff(id, { state, dueInMs, tried, pauses, lookups }) {
      await pool().query(
        `UPDATE messages SET due_at = now() + make_interval(secs => $3::double precision / 1000),
           tried = coalesce($4, tried), pauses = coalesce($5, pauses), lookups = coalesce($6, lookups)
         WHERE id = $1 AND state = $2`,
        [id, state, dueInMs, tried, pauses, lookups],
      );
    },
  };
}
