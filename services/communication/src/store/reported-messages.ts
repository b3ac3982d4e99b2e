import { inTransaction } from '@rollcall/platform/postgres/pool.ts';
import type { Channel } from '../domain/messages.ts';
import { foldedRecipient } from '../domain/recipients.ts';
import type { ReportedMessages } from '../domain/reports.ts';
import { attemptMoves } from '../domain/states.ts';
import { changeMessage } from './message-changes.ts';
import { createMessageRows, type MessageTableDeps } from './message-rows.ts';
import { shortKey } from './short-keys.ts';

interface ReportedRow {
  readonly id: string;
  readonly subject: string;
  readonly channel: Channel;
  readonly envelope: Buffer;
  readonly number: number;
}

/** Messages, as providers report of them. */
export function createReportedMessages({ pool, vault, recipients, recordEvents }: MessageTableDeps): ReportedMessages {
  const rows = createMessageRows(vault);
  const reportedOf = ({ envelope, number: attempt, ...row }: ReportedRow) => {
    const { to } = rows.openEnvelope(row.id, envelope);
    return { ...row, to, attempt };
  };
  return {
    async find(provider, { messageId, providerId: given }) {
      const providerId = given && shortKey(given);
      const { rows: found } = await pool().query<ReportedRow>(
        `SELECT messages.id, subject, channel, envelope, number
         FROM attempts JOIN messages ON messages.id = message_id
         WHERE attempts.provider = $1 AND ${messageId === undefined ? 'provider_id = $2' : 'message_id = $2'}
         ORDER BY (provider_id = $3) DESC NULLS LAST, number DESC LIMIT 1`,
        [provider, messageId ?? providerId, providerId],
      );
      return found.map(reportedOf)[0];
    },
    async findLast(provider, recipient) {
      const { rows: found } = await pool().query<ReportedRow>(
        `SELECT DISTINCT ON (subject) messages.id, subject, channel, envelope, number
         FROM messages JOIN attempts ON message_id = messages.id
         WHERE recipient = ANY($2) AND attempts.provider = $1
         ORDER BY subject, messages.created_at DESC, number DESC`,
        [provider, recipients.candidates(foldedRecipient(recipient))],
      );
      return found.map(reportedOf);
    },
    receive: ({ id, attempt }, receipt, reason) =>
      inTransaction(pool(), async (client) => {
        const { from, to } = attemptMoves.receipt;
        await client.query(
          `UPDATE attempts SET state = $3, ended_at = coalesce(ended_at, now())
           WHERE message_id = $1 AND number = $2 AND state = ANY($4)`,
          [id, attempt, to, from],
        );
        await changeMessage(client, recordEvents, { id, event: `receipt-${receipt}`, reason });
      }),
  };
}
