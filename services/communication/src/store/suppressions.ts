import { randomUUID } from 'node:crypto';
import { indexAnew } from '@rollcall/platform/postgres/index-anew.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { bytesIn, createSharedStatement } from '@rollcall/platform/postgres/shared-statement.ts';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import { foldedRecipient } from '../domain/recipients.ts';
import {
  type StoredSuppression,
  type SuppressedChannel,
  type SuppressionReason,
  type SuppressionScope,
  type SuppressionStore,
  suppressionScopes,
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

interface Asked {
  readonly subject: string;
  readonly channel: SuppressedChannel;
  /** Indexes of the recipient. */
  readonly candidates: readonly string[];
  readonly scopes: readonly SuppressionScope[];
}

/** The oldest reason of each that has one. */
const REASONS = `
  SELECT place, reason
  FROM json_to_recordset($1) AS asked (place integer, subject text, channel text, candidates bytea[], scopes text[]),
    LATERAL (
      SELECT reason FROM suppressions
      WHERE subject = asked.subject AND channel = asked.channel AND recipient_index = ANY(asked.candidates)
        AND scope = ANY(asked.scopes)
      ORDER BY created_at, id LIMIT 1) AS oldest`;

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

  const reasonOf = createSharedStatement<Asked, SuppressionReason | undefined>({
    async run(asked) {
      const values = [JSON.stringify(asked.map((each, place) => ({ ...each, place })))];
      const asking = { name: 'suppression-reasons', text: REASONS, values };
      const { rows } = await pool().query<Pick<Row, 'reason'> & { readonly place: number }>(asking);
      const reasons = new Map(rows.map(({ place, reason }) => [place, reason]));
      return asked.map((_, place) => reasons.get(place));
    },
  });

  return {
    async reasonFor({ subject, channel, recipient }, category) {
      const candidates = index.candidates(foldedRecipient(recipient)).map(bytesIn);
      return reasonOf({ subject, channel, candidates, scopes: category === 'marketing' ? suppressionScopes : ['all'] });
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
