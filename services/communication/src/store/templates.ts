import { randomUUID } from 'node:crypto';
import type { ListPage } from '@rollcall/platform/lists.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { LRUCache } from 'lru-cache';
import type {
  StoredTemplate,
  TemplateKey,
  TemplateStore,
  TemplateSummary,
  TemplateVersion,
  TemplateWrite,
} from '../domain/templates/catalogue.ts';

/** Of one template; the oldest are forgotten. */
const VERSIONS_KEPT = 50;
/** After that a template that was deleted is forgotten with all its versions. */
const DELETED_DAYS = 90;
/** In characters of JSON. */
const CACHE_SIZE = 32 * 1024 * 1024;

interface Row extends TemplateSummary {
  readonly id: string;
}

const COLUMNS = `id, name, version, created_at AS "createdAt", updated_at AS "updatedAt"`;

export interface TemplateTable extends TemplateStore {
  /** Forgets what was deleted long ago. @param limit how many at most. @returns how many. */
  prune(limit: number): Promise<number>;
}

/** @param pool throws while the schema is not there yet. */
export function createTemplateTable({ pool }: { readonly pool: () => Pool }): TemplateTable {
  const versions = createVersions();
  return {
    write: (write) => inTransaction(pool(), (client) => writeTemplate(client, write)),
    find: (key, version) => (version === undefined ? findNewest(key) : findVersion(key, version)),
    async versions({ subject, name }) {
      const { rows } = await pool().query<TemplateVersion>(
        `SELECT kept.version, kept.created_at AS "createdAt"
         FROM templates JOIN template_versions kept ON template_id = id
         WHERE subject = $1 AND name = $2 ORDER BY kept.version DESC`,
        [subject, name],
      );
      return rows;
    },
    list: (subject, builtIn, page) => listTemplates(pool(), { subject, builtIn, page }),
    remove: (key, permit) =>
      inTransaction(pool(), async (client) => {
        const present = await lockedRow(client, key);
        if (present === undefined) return false;
        permit(present.version);
        await client.query('UPDATE templates SET deleted_at = now() WHERE id = $1', [present.id]);
        return true;
      }),
    async prune(limit) {
      const { rowCount } = await pool().query(
        `DELETE FROM templates WHERE id IN (
           SELECT id FROM templates WHERE deleted_at < now() - interval '${DELETED_DAYS} days' LIMIT $1)`,
        [limit],
      );
      return rowCount ?? 0;
    },
  };

  async function findNewest({ subject, name }: TemplateKey): Promise<StoredTemplate | undefined> {
    const { rows } = await pool().query<Row>(
      `SELECT ${COLUMNS} FROM templates WHERE subject = $1 AND name = $2 AND deleted_at IS NULL`,
      [subject, name],
    );
    const [row] = rows;
    return row === undefined ? undefined : versions.of(pool(), row);
  }

  async function findVersion({ subject, name }: TemplateKey, version: number): Promise<StoredTemplate | undefined> {
    const { rows } = await pool().query<Row>(`SELECT ${COLUMNS} FROM templates WHERE subject = $1 AND name = $2`, [
      subject,
      name,
    ]);
    const [row] = rows;
    return row === undefined ? undefined : versions.of(pool(), { ...row, version });
  }
}

type Content = Pick<StoredTemplate, 'definition' | 'published'> & { readonly publishedAt: Date };

/** Versions never change, so each is read once: what is made of it to render it hangs on the object. */
function createVersions() {
  const contents = new LRUCache<string, Content>({ maxSize: CACHE_SIZE });
  return {
    async of(db: Pool | PoolClient, { id, ...template }: Row): Promise<StoredTemplate | undefined> {
      const key = `${id} ${template.version}`;
      const content = contents.get(key) ?? (await readContent(db, id, template.version));
      if (content === undefined) return undefined;
      if (!contents.has(key)) contents.set(key, content, { size: JSON.stringify(content).length });
      const { publishedAt: updatedAt, ...rest } = content;
      return { ...template, updatedAt, ...rest };
    },
  };
}

async function readContent(db: Pool | PoolClient, id: string, version: number): Promise<Content | undefined> {
  const { rows } = await db.query<Content>(
    `SELECT definition, published, created_at AS "publishedAt"
     FROM template_versions WHERE template_id = $1 AND version = $2`,
    [id, version],
  );
  return rows[0];
}

/** Others that write templates of the subject wait. */
async function lockSubject(client: PoolClient, subject: string): Promise<void> {
  await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('templates ' || $1, 0))`, [subject]);
}

/** The template, where it is not deleted. */
async function lockedRow(client: PoolClient, { subject, name }: TemplateKey): Promise<Row | undefined> {
  await lockSubject(client, subject);
  const { rows } = await client.query<Row>(
    `SELECT ${COLUMNS} FROM templates WHERE subject = $1 AND name = $2 AND deleted_at IS NULL`,
    [subject, name],
  );
  return rows[0];
}

async function writeTemplate(client: PoolClient, write: TemplateWrite): Promise<StoredTemplate> {
  const { subject, name, definition, published, decide } = write;
  const row = await lockedRow(client, write);
  const content = row === undefined ? undefined : await readContent(client, row.id, row.version);
  const present = row === undefined || content === undefined ? undefined : { ...row, ...content };
  if (decide(present, await countOthers(client, write)) === 'leave' && present !== undefined) return present;
  const { rows } = await client.query<Row>(
    `INSERT INTO templates AS kept (id, subject, name, version) VALUES ($1, $2, $3, 1)
     ON CONFLICT (subject, name) DO UPDATE SET
       version = kept.version + 1,
       created_at = CASE WHEN kept.deleted_at IS NULL THEN kept.created_at ELSE now() END,
       updated_at = now(),
       deleted_at = NULL
     RETURNING ${COLUMNS}`,
    [randomUUID(), subject, name],
  );
  const [written] = rows;
  if (written === undefined) throw new Error('PostgreSQL returned no row of a template that was written');
  await client.query(
    `INSERT INTO template_versions (template_id, version, definition, published) VALUES ($1, $2, $3, $4)`,
    [written.id, written.version, JSON.stringify(definition), JSON.stringify(published)],
  );
  await client.query('DELETE FROM template_versions WHERE template_id = $1 AND version <= $2', [
    written.id,
    written.version - VERSIONS_KEPT,
  ]);
  return { ...written, definition, published };
}

async function countOthers(client: PoolClient, { subject, name }: TemplateKey): Promise<number> {
  const { rows } = await client.query<{ others: number }>(
    `SELECT count(*)::int AS others FROM templates WHERE subject = $1 AND name <> $2 AND deleted_at IS NULL`,
    [subject, name],
  );
  return rows[0]?.others ?? 0;
}

interface Listing {
  readonly subject: string;
  readonly builtIn: readonly TemplateSummary[];
  readonly page: ListPage;
}

function listTemplates(pool: Pool, { subject, builtIn, page }: Listing) {
  const own = `SELECT id, name, version, created_at, updated_at
    FROM templates WHERE subject = $1 AND deleted_at IS NULL`;
  const ofAll = `SELECT md5(name)::uuid AS id, name, version, at AS created_at, at AS updated_at
    FROM unnest($2::text[], $3::int[], $4::timestamptz[]) AS each (name, version, at)
    WHERE NOT EXISTS (SELECT FROM templates own
      WHERE own.subject = $1 AND own.name = each.name AND own.deleted_at IS NULL)`;
  return readNewest<TemplateSummary>(pool, {
    columns: `name, version, created_at AS "createdAt", updated_at AS "updatedAt"`,
    table: `(${own} UNION ALL ${ofAll}) AS listed`,
    where: 'TRUE',
    parameters: [
      subject,
      builtIn.map(({ name }) => name),
      builtIn.map(({ version }) => version),
      builtIn.map(({ createdAt }) => createdAt),
    ],
    page,
  });
}
