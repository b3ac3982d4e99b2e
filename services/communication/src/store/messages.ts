import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { MessageStore } from '../domain/message-store.ts';
import type { Attempt } from '../domain/messages.ts';
import { foldedRecipient } from '../domain/recipients.ts';
import { messageMoves } from '../domain/states.ts';
import { changeMessage, recordState } from './message-changes.ts';
import { insertsMessage } from './message-inserts.ts';
import { createMessageRows, MESSAGE_COLUMNS, type MessageRow, type MessageTableDeps } from './message-rows.ts';

/** Messages by their tags, in the order of `message_tags`. Where a tag alone is counted, no message is read. */
const TAGGED = `(
  SELECT tag, message_tags.subject, message_tags.created_at, id, channel, state, template, recipient
  FROM message_tags LEFT JOIN messages USING (id)) AS messages`;

const WHOSE = 'id = $1 AND ($3 OR subject = $2)';

export function createMessageTable(deps: MessageTableDeps): MessageStore {
  const { pool, vault, recipients, recordEvents } = deps;
  const rows = createMessageRows(vault);

  return {
    insert: insertsMessage(deps),
    async find(id, { subject, isAll }) {
      const { rows: found } = await pool().query<MessageRow>(`SELECT ${MESSAGE_COLUMNS} FROM messages WHERE ${WHOSE}`, [
        id,
        subject,
        isAll,
      ]);
      return found.map((row) => rows.messageOf(row))[0];
    },
    async attempts(ids) {
      const { rows: found } = await pool().query<AttemptRow>(
        `SELECT message_id, number, provider, state, reason, started_at, ended_at FROM attempts
         WHERE message_id = ANY($1) ORDER BY number`,
        [ids],
      );
      const byMessage = Map.groupBy(found, (row) => row.message_id);
      return new Map([...byMessage].map(([id, each]) => [id, each.map(attemptOf)]));
    },
    async histories(ids) {
      const { rows: found } = await pool().query<{ resource_id: string; type: string; created_at: Date }>(
        'SELECT resource_id, type, created_at FROM events WHERE resource_id = ANY($1) ORDER BY number',
        [ids],
      );
      const byMessage = Map.groupBy(found, (row) => row.resource_id);
      return new Map([...byMessage].map(([id, each]) => [id, each.map(({ type, created_at: at }) => ({ type, at }))]));
    },
    async list({ subject, isAll }, { state, channel, to, tag, template }, page) {
      const { rows: found, ...rest } = await readNewest<MessageRow>(pool(), {
        table: tag === undefined ? 'messages' : TAGGED,
        columns: MESSAGE_COLUMNS,
        shownOf: 'messages',
        where: `($2 OR subject = $1) AND ($3::text IS NULL OR state = $3) AND ($4::text IS NULL OR channel = $4)
          AND ($5::bytea[] IS NULL OR recipient = ANY($5)) AND ($6::text IS NULL OR template = $6)
          ${tag === undefined ? '' : 'AND tag = $7'}`,
        parameters: [
          subject,
          isAll,
          state,
          channel,
          to === undefined ? undefined : recipients.candidates(foldedRecipient(to)),
          template,
          ...(tag === undefined ? [] : [tag]),
        ],
        page,
      });
      return { rows: found.map((row) => rows.messageOf(row)), ...rest };
    },
    cancel: (id) => inTransaction(pool(), (client) => changeMessage(client, recordEvents, { id, event: 'cancelled' })),
    reschedule: (id, { sendAt, expiresAt }) =>
      inTransaction(pool(), async (client) => {
        const { rows: found } = await client.query<MessageRow>(
          `UPDATE messages SET send_at = $2, due_at = $2, expires_at = $3
           WHERE id = $1 AND state = ANY($4) RETURNING ${MESSAGE_COLUMNS}`,
          [id, sendAt, expiresAt, messageMoves.released.from],
        );
        for (const row of found) await recordState(client, recordEvents, row);
        return found.length === 1;
      }),
    restart: (id, { callId, expiresAfterMs }) =>
      inTransaction(pool(), async (client) => {
        const { rowCount } = await client.query(
          `UPDATE messages SET expires_at = now() + make_interval(secs => $2::double precision / 1000),
             restarts = restarts || $4::uuid
           WHERE id = $1 AND content IS NOT NULL AND state = ANY($3) AND NOT $4 = ANY(restarts)`,
          [id, expiresAfterMs, messageMoves.restarted.from, callId],
        );
        if (rowCount === 0) return wasRestartedBy(client, id, callId);
        const anew = { tried: [], pauses: 0, repeats: 0 };
        return changeMessage(client, recordEvents, { id, event: 'restarted', dueInMs: 0, ...anew });
      }),
  };
}

async function wasRestartedBy(client: PoolClient, id: string, callId: string): Promise<boolean> {
  const { rowCount } = await client.query('SELECT FROM messages WHERE id = $1 AND $2 = ANY(restarts)', [id, callId]);
  return rowCount !== 0;
}

interface AttemptRow {
  readonly message_id: string;
  readonly number: number;
  readonly provider: string;
  readonly state: Attempt['state'];
  readonly reason: string | null;
  readonly started_at: Date;
  readonly ended_at: Date | null;
}

function attemptOf({ number, provider, state, reason, started_at, ended_at }: AttemptRow): Attempt {
  return {
    number,
    provider,
    state,
    reason: reason ?? undefined,
    startedAt: started_at,
    endedAt: ended_at ?? undefined,
  };
}
