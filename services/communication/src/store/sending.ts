import { takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import { inTransaction } from '@rollcall/platform/postgres/pool.ts';
import type { BegunAttempt, DueMessage, SendingStore } from '../domain/message-store.ts';
import type { Envelope, LeftOut } from '../domain/messages.ts';
import { type BegunRow, beginsAttempt, finishesLastAttempt, type SendingTableDeps } from './attempts.ts';
import { changeMessage, IS_SENT } from './message-changes.ts';
import { createMessageRows, MESSAGE_COLUMNS, type MessageRow } from './message-rows.ts';

/** From taking a row to writing its call down, which has a lease of its own. */
const LEASE_SECONDS = 30;

const DUE_COLUMNS = `${MESSAGE_COLUMNS}, attempts, tried, pauses, repeats, begun_at, expires_at,
  coalesce(octet_length(content), 0) AS content_bytes`;

type DueRow = MessageRow & {
  readonly attempts: number;
  readonly tried: readonly string[];
  readonly pauses: number;
  readonly repeats: number;
  readonly begun_at: Date | null;
  readonly expires_at: Date;
  readonly content_bytes: number;
};

const isOfAddress =
  ({ address }: LeftOut) =>
  (other: LeftOut) =>
    other.address === address;

export function createSendingTable(deps: SendingTableDeps): SendingStore {
  const { pool, vault, recordEvents } = deps;
  const messages = createMessageRows(vault);
  const dueOf = (row: DueRow): DueMessage => ({
    ...messages.messageOf(row),
    attempts: row.attempts,
    tried: row.tried,
    pauses: row.pauses,
    repeats: row.repeats,
    begunAt: row.begun_at ?? undefined,
    expiresAt: row.expires_at,
    contentBytes: row.content_bytes,
  });
  const begunOf = ({ id, attempts, deduplication_id, content }: BegunRow): BegunAttempt => ({
    number: attempts,
    deduplicationId: deduplication_id,
    content: content === null ? undefined : messages.openContent(id, content),
  });
  const beginAttempt = beginsAttempt(deps);
  const finishLastAttempt = finishesLastAttempt(deps);

  function changeEnvelope(id: string, change: (envelope: Envelope) => Envelope): Promise<void> {
    return inTransaction(pool(), async (client) => {
      const { rows } = await client.query<Pick<DueRow, 'envelope'>>(
        'SELECT envelope FROM messages WHERE id = $1 FOR UPDATE',
        [id],
      );
      for (const { envelope } of rows) {
        const sealed = messages.sealEnvelope(id, change(messages.openEnvelope(id, envelope)));
        await client.query('UPDATE messages SET envelope = $2 WHERE id = $1', [id, sealed]);
      }
    });
  }

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
    async begin(due, provider, leaseMs) {
      const begun = await beginAttempt({ due, provider, leaseMs });
      return begun && begunOf(begun);
    },
    change: (id, change) => inTransaction(pool(), (client) => changeMessage(client, recordEvents, { id, ...change })),
    async finish(due, end, change) {
      if (await finishLastAttempt({ due, end, change })) return true;
      // A call that was accepted proves that the message is sent, whatever was begun after it.
      if (!IS_SENT.has(change.event)) return false;
      return inTransaction(pool(), (client) => changeMessage(client, recordEvents, { id: due.id, ...change }));
    },
    leaveOut: (id, leftOut) =>
      changeEnvelope(id, (envelope) => {
        const before = (envelope.leftOut ?? []).filter((each) => !leftOut.some(isOfAddress(each)));
        return { ...envelope, leftOut: [...before, ...leftOut] };
      }),
    addCopied: (id, copied) =>
      changeEnvelope(id, (envelope) => ({ ...envelope, copied: [...(envelope.copied ?? []), ...copied] })),
    async putOff(id, { state, dueInMs, tried, pauses, repeats }) {
      await pool().query(
        `UPDATE messages SET due_at = now() + make_interval(secs => $3::double precision / 1000),
           tried = coalesce($4, tried), pauses = coalesce($5, pauses), repeats = coalesce($6, repeats)
         WHERE id = $1 AND state = $2`,
        [id, state, dueInMs, tried, pauses, repeats],
      );
    },
  };
}
