import { inTransaction } from '@rollcall/platform/postgres/pool.ts';
import type { Channel } from '../domain/messages.ts';
import type { ReportedMessages } from '../domain/reports.ts';
import { attemptMoves } from '../domain/states.ts';
import { changeMessage } from './message-changes.ts';
import { createMessageRows } from './message-rows.ts';
import type { SendingTableDeps } from './sending.ts';

interface ReportedRow {
  readonly id: string;
  readonly subject: string;
  readonly channel: Channel;
  readonly envelope: Buffer;
  readonly number: number;
}

/** Messages, as providers report of them. */
export function createReportedMessages({ pool, vault, recordEvents }: SendingTableDeps): ReportedMessages {
  const rows = createMessageRows(vault);
  return {
    async find(provider, { messageId, providerId }) {
      const { rows: found } = await pool().query<ReportedRow>(
        `SELECT messages.id, subject, channel, envelope, number
         FROM attempts JOIN messages ON messages.id = message_id
         WHERE attempts.provider = $1 AND ${messageId === undefined ? 'provider_id = $2' : 'message_id = $2'}
         ORDER BY (provider_id = $3) DESC NULLS LAST, number DESC LIMIT 1`,
        [provider, messageId ?? providerId, providerId],
      );
      return found.map(({ envelope, number: attempt, ...row }) => {
        const { to } = rows.openEnvelope(row.id, envelope);
        return { ...row, to, attempt };
      })[0];
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
