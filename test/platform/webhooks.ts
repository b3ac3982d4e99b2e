import { randomBytes, randomUUID } from 'node:crypto';
import { createEventRecorder } from '@rollcall/platform/events/events.ts';
import { createPool, inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createVault } from '@rollcall/platform/vault.ts';
import { vi } from 'vitest';
import { type BillingService, type Caller, idOf, startBilling } from '../payment/billing-service.ts';
import { createDatabase } from '../support/postgres.ts';
import type { Answer } from '../support/replica.ts';

/** What a subject's webhooks need. */
export const SCOPE = 'payments:write payments:read';

/** Payment, and a way to make things happen there without a provider. */
export interface EventWorld extends AsyncDisposable {
  readonly service: BillingService;
  readonly pool: Pool;
  callerOf(subject: string): Promise<Caller>;
  /** @returns the ids of the events, in their order. */
  happen(subject: string, type: string, count?: number): Promise<readonly string[]>;
  /** Resolves once all that has happened can be read. */
  settled(): Promise<void>;
  /** Makes an endpoint that wants everything, unless it is said what. */
  hook(caller: Caller, url: string, eventTypes?: readonly string[]): Promise<Hook>;
}

/** An endpoint that was made. */
interface Hook {
  readonly id: string;
  readonly secret: string;
}

/** Of payment, and some that begin as those do. */
const TYPES = ['payment.succeeded', 'payment.succeeded_late', 'payment.failed', 'refund.succeeded', 'refund.failed'];

/** @param settings more of payment. */
export async function startEventWorld(settings: Readonly<Record<string, string>> = {}): Promise<EventWorld> {
  await using stack = new AsyncDisposableStack();
  const { url } = stack.use(await createDatabase());
  const key = randomBytes(32);
  const service = stack.use(
    await startBilling({
      databaseUrl: url,
      files: { ROLLCALL_VAULT_KEYS_FILE: { keys: [{ id: 'one', key: key.toString('base64') }] } },
      settings: { ROLLCALL_WEBHOOK_ADDRESSES: 'any', ...settings },
    }),
  );
  const pool = createPool({ url, schema: 'payment', maxConnections: 4, log: createLogger('test', 'silent') });
  stack.defer(() => pool.end());
  const recordEvents = createEventRecorder(createVault([{ id: 'one', key }]), TYPES);
  const kept = stack.move();
  return {
    service,
    pool,
    callerOf: (subject) => service.callerOf(subject, SCOPE),
    async happen(subject, type, count = 1) {
      const events = Array.from({ length: count }, (_, number) => {
        const resourceId = randomUUID();
        return { subject, type, resourceId, data: { id: resourceId, number } };
      });
      await inTransaction(pool, (client) => recordEvents(client, events));
      const { rows } = await pool.query<{ id: string }>(
        'SELECT id FROM events WHERE resource_id = ANY($1) ORDER BY number',
        [events.map(({ resourceId }) => resourceId)],
      );
      return rows.map(({ id }) => id);
    },
    async settled() {
      await vi.waitUntil(() => isSettled(pool), { timeout: 10_000, interval: 20 });
    },
    async hook(caller, to, eventTypes) {
      const made = await caller.post('/webhook-endpoints', {
        url: to,
        ...(eventTypes === undefined ? {} : { eventTypes }),
      });
      return { id: idOf(made), secret: secretOf(made) };
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function secretOf({ body }: Answer): string {
  const secret = body?.['secret'];
  if (typeof secret !== 'string') throw new Error(`The answer has no secret: ${JSON.stringify(body)}`);
  return secret;
}

async function isSettled(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query('SELECT FROM events WHERE position IS NULL');
  return rowCount === 0;
}
