import { randomUUID } from 'node:crypto';
import { indexAnew } from '@rollcall/platform/postgres/index-anew.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import { foldedRecipient } from '../domain/recipients.ts';
import type {
  StoredSuppression,
  SuppressedChannel,
  SuppressionReason,
  SuppressionScope,
  SuppressionStore,
} from '../domain/suppressions.ts';

interface Row {
  readonly id: string;
  readonly subject: string;
  readonly channel: SuppressedChannel;
  readonly recipient: Buffer;
  readonly reason: SuppressionReason;
  readonly scope: SuppressionScope;
  readonly message_id: string | null;
  readonly created_at: Date;
}

const COLUMNS = 'id, subject, channel, recipient, reason, scope, message_id, created_at';

/** How rows of one suppression are told from others. */
export const SAME_SUPPRESSION = {
  table: 'suppressions',
  column: 'recipient_index',
  uniqueWith: ['subject', 'channel', 'reason'],
} as const;

export interface SuppressionTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  /** Of recipients. */
  readonly index: BlindIndex;
}

export function createSuppressionTable({ pool, vault, index }: SuppressionTableDeps): SuppressionStore {
  function suppressionOf(row: Row): StoredSuppression {
    const { id, subject, channel, reason, scope, message_id: messageId, created_at: createdAt } = row;
    const recipient = vault.open(row.recipient, suppressionContext(id)).toString();
    return { subject, channel, recipient, reason, scope, messageId: messageId ?? undefined, createdAt };
  }

  return {
    async reasonFor({ subject, channel, recipient }, category) {
      const { rows } = await pool().query<Pick<Row, 'reason'>>(
        `SELECT reason FROM suppressions
         WHERE subject = $1 AND channel = $2 AND recipient_index = ANY($3) AND scope = ANY($4)
         ORDER BY created_at, id LIMIT 1`,
        [
          subject,
          channel,
          index.candidates(foldedRecipient(recipient)),
          category === 'marketing' ? ['all', 'marketing'] : ['all'],
        ],
      );
      return rows[0]?.reason;
    },
    add: (entry) =>
      inTransaction(pool(), async (client) => {
        const { subject, channel, recipient, reason, scope, messageId } = entry;
        await indexAnew(client, SAME_SUPPRESSION, index.candidates(foldedRecipient(recipient)));
        const id = randomUUID();
        const { rows } = await client.query<Row>(
          `INSERT INTO suppressions (id, subject, channel, recipient_index, recipient, reason, scope, message_id)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
           ON CONFLICT (subject, channel, recipient_index, reason) DO UPDATE SET scope = excluded.scope
           RETURNING ${COLUMNS}`,
          [
            id,
            subject,
            channel,
            index.of(foldedRecipient(recipient)),
            vault.seal(recipient, suppressionContext(id)),
            reason,
            scope,
            messageId,
          ],
        );
        const [row] = rows;
        if (row === undefined) throw new Error('PostgreSQL returned no row of a suppression that was written');
        return { suppression: suppressionOf(row), isNew: row.id === id };
      }),
    async remove({ subject, channel, recipient }, { reason, before }) {
      const { rowCount } = await pool().query(
        `DELETE FROM suppressions
         WHERE subject = $1 AND channel = $2 AND recipient_index = ANY($3) AND ($4::text IS NULL OR reason = $4)
           AND ($5::timestamptz IS NULL OR created_at < $5)`,
        [subject, channel, index.candidates(foldedRecipient(recipient)), reason, before],
      );
      return rowCount !== 0;
    },
    async list(subject, { recipient, channel, reason }, page) {
      const { rows, ...rest } = await readNewest<Row>(pool(), {
        columns: COLUMNS,
        table: 'suppressions',
        where: `subject = $1 AND ($2::bytea[] IS NULL OR recipient_index = ANY($2))
          AND ($3::text IS NULL OR channel = $3) AND ($4::text IS NULL OR reason = $4)`,
        parameters: [
          subject,
          recipient === undefined ? null : index.candidates(foldedRecipient(recipient)),
          channel ?? null,
          reason ?? null,
        ],
        page,
      });
      return { rows: rows.map(suppressionOf), ...rest };
    },
  };
}

/** What the recipient of a suppression is sealed for. */
export function suppressionContext(id: string): string {
  return `suppression ${id}`;
}
