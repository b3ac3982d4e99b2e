import { readNewest } from '../../postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '../../postgres/pool.ts';
import type { Vault } from '../../vault.ts';
import type {
  DisabledReason,
  EndpointSettings,
  NewEndpoint,
  Owner,
  WebhookEndpoint,
  WebhookRecords,
} from './webhooks.ts';

const ENDPOINTS_MAX = 20;
const COLUMNS = 'id, settings, event_types, disabled_reason, created_at';
const OWNED = 'id = $1 AND ($2::text IS NULL OR subject = $2)';

interface Row {
  readonly id: string;
  readonly settings: Buffer;
  readonly event_types: readonly string[];
  readonly disabled_reason: DisabledReason | null;
  readonly created_at: Date;
}

type Sealed = Pick<WebhookEndpoint, 'url' | 'secret' | 'description' | 'previous'>;

export interface WebhookStoreDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
}

/** What the settings of an endpoint are sealed for. */
export const endpointContext = (id: string) => `webhook endpoint ${id}`;

/** Seals what only the owner and its receiver may know of an endpoint. */
export function createEndpointSeal(vault: Vault) {
  return {
    close: (id: string, { url, secret, description, previous }: Sealed): Buffer =>
      vault.seal(JSON.stringify({ url, secret, description, previous }), endpointContext(id)),
    open: (id: string, settings: Buffer): Sealed => JSON.parse(vault.open(settings, endpointContext(id)).toString()),
  };
}

type EndpointRecords = Pick<
  WebhookRecords,
  'create' | 'find' | 'list' | 'change' | 'rotate' | 'remove' | 'countFailing'
>;

/** Of the table `webhook_endpoints`. */
export function createEndpointRecords({ pool, vault }: WebhookStoreDeps): EndpointRecords {
  const seal = createEndpointSeal(vault);

  function endpointOf(row: Row): WebhookEndpoint {
    const { id, settings, event_types: eventTypes, disabled_reason: disabledReason, created_at: createdAt } = row;
    return { id, ...seal.open(id, settings), eventTypes, disabledReason, createdAt };
  }

  async function find(client: Pool | PoolClient, id: string, owner: Owner): Promise<WebhookEndpoint | undefined> {
    const { rows } = await client.query<Row>(`SELECT ${COLUMNS} FROM webhook_endpoints WHERE ${OWNED}`, [id, owner]);
    return rows.map(endpointOf)[0];
  }

  return {
    countFailing: async () => countFailing(pool()),
    async create(endpoint) {
      await insert(pool(), endpoint, seal.close(endpoint.id, endpoint));
      return find(pool(), endpoint.id, endpoint.subject);
    },
    find: (id, owner) => find(pool(), id, owner),
    async list(owner, page) {
      const { rows, ...rest } = await readNewest<Row>(pool(), {
        columns: COLUMNS,
        table: 'webhook_endpoints',
        where: '$1::text IS NULL OR subject = $1',
        parameters: [owner],
        page,
      });
      return { rows: rows.map(endpointOf), ...rest };
    },
    change: (id, owner, { enabled, ...settings }) =>
      inTransaction(pool(), async (client) => {
        await client.query('SELECT FROM webhook_endpoints WHERE id = $1 FOR UPDATE', [id]);
        const before = await find(client, id, owner);
        if (before === undefined) return undefined;
        const after: EndpointSettings = { ...before, ...settings };
        await client.query('UPDATE webhook_endpoints SET settings = $2, event_types = $3 WHERE id = $1', [
          id,
          seal.close(id, { ...before, ...after }),
          after.eventTypes,
        ]);
        if (enabled !== undefined) await enable(client, id, enabled);
        return find(client, id, owner);
      }),
    rotate: (id, owner, { id: rotationId, secret, previousUntil: until }) =>
      inTransaction(pool(), async (client) => {
        await client.query('SELECT FROM webhook_endpoints WHERE id = $1 FOR UPDATE', [id]);
        const before = await find(client, id, owner);
        if (before === undefined || before.previous?.rotationId === rotationId) return before;
        const previous = { secret: before.secret, until, rotationId };
        const sealed = seal.close(id, { ...before, secret, previous });
        await client.query('UPDATE webhook_endpoints SET settings = $2 WHERE id = $1', [id, sealed]);
        return { ...before, secret, previous };
      }),
    async remove(id, owner) {
      const { rowCount } = await pool().query(`DELETE FROM webhook_endpoints WHERE ${OWNED}`, [id, owner]);
      return rowCount === 1;
    },
  };
}

/** A few more may come to be where several are made at the same moment. */
async function insert(pool: Pool, { id, subject, eventTypes }: NewEndpoint, settings: Buffer): Promise<void> {
  await pool.query(
    `INSERT INTO webhook_endpoints (id, subject, settings, event_types)
     SELECT $1, $2, $3, $4
     WHERE (SELECT count(*) FROM webhook_endpoints WHERE subject = $2) < $5
     ON CONFLICT (id) DO NOTHING`,
    [id, subject, settings, eventTypes, ENDPOINTS_MAX],
  );
}

/** See {@link WebhookRecords.countFailing}. */
async function countFailing(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM webhook_endpoints
     WHERE disabled_reason IS NULL AND failing_since < now() - interval '1 hour'`,
  );
  return rows[0]?.count ?? 0;
}

/** Whoever enables it says that it works: its failures and pauses count no more. */
async function enable(client: PoolClient, id: string, isEnabled: boolean): Promise<void> {
  await client.query(
    isEnabled
      ? `UPDATE webhook_endpoints SET disabled_reason = NULL, failing_since = NULL, busy_until = NULL
         WHERE id = $1 AND disabled_reason IS NOT NULL`
      : "UPDATE webhook_endpoints SET disabled_reason = 'owner' WHERE id = $1 AND disabled_reason IS NULL",
    [id],
  );
}
