import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { PublishedDocument } from '../documents/publishing.ts';
import type { TrustedDocumentStore } from '../documents/trusted-documents.ts';

/** @param pool throws until the schema is up to date. */
export function createTrustedDocumentStore(pool: () => Pool): TrustedDocumentStore {
  return {
    async find(id) {
      const { rows } = await pool().query<{ document: string }>(
        'SELECT document FROM trusted_documents WHERE document_id = $1 LIMIT 1',
        [id],
      );
      return rows[0]?.document;
    },
    async has(hash) {
      const { rows } = await pool().query<{ is_there: boolean }>(
        'SELECT EXISTS (SELECT FROM trusted_documents WHERE hash = $1) AS is_there',
        [Buffer.from(hash, 'hex')],
      );
      return rows[0]?.is_there === true;
    },
    publish: (client, documents) => inTransaction(pool(), (connection) => publish(connection, client, documents)),
    async list(page, client) {
      const { rows, ...list } = await readNewest<{
        client: string;
        document_id: string;
        document: string;
        created_at: Date;
      }>(pool(), {
        columns: 'client, document_id, document, created_at',
        table: 'trusted_documents',
        where: client === undefined ? 'TRUE' : 'client = $1',
        parameters: client === undefined ? [] : [client],
        page,
      });
      const documents = rows.map(({ client, document_id: id, document, created_at: createdAt }) => ({
        client,
        id,
        document,
        createdAt,
      }));
      return { rows: documents, ...list };
    },
    async remove(client, id) {
      const { rowCount } = await pool().query(
        'DELETE FROM trusted_documents WHERE client = $1 AND ($2::text IS NULL OR document_id = $2)',
        [client, id ?? null],
      );
      return rowCount ?? 0;
    },
  };
}

async function publish(
  connection: PoolClient,
  client: string,
  documents: readonly PublishedDocument[],
): Promise<number | readonly string[]> {
  // Of two that publish an id at once the second sees what the first has written.
  await connection.query(`SELECT pg_advisory_xact_lock(hashtext('rollcall-trusted-documents'))`);
  const published = JSON.stringify(documents);
  const { rows } = await connection.query<{ id: string }>(
    `SELECT DISTINCT fresh.id FROM jsonb_to_recordset($1) AS fresh (id text, hash text)
     JOIN trusted_documents ON document_id = fresh.id WHERE trusted_documents.hash <> decode(fresh.hash, 'hex')
     ORDER BY fresh.id`,
    [published],
  );
  if (rows.length > 0) return rows.map(({ id }) => id);
  const { rowCount } = await connection.query(
    `INSERT INTO trusted_documents (client, document_id, hash, document)
     SELECT $1, id, decode(hash, 'hex'), document
     FROM jsonb_to_recordset($2) AS fresh (id text, hash text, document text)
     ON CONFLICT (client, document_id) DO NOTHING`,
    [client, published],
  );
  return rowCount ?? 0;
}
