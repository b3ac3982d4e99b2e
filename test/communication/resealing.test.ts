import { createSuppressionTable } from '@rollcall/communication/store/suppressions.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createBlindIndex, createVault, parseVaultKeys } from '@rollcall/platform/vault.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, type CommunicationService, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const keyOf = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill).toString('base64') });
const ONE = keyOf('one', 1);
const TWO = keyOf('key-two', 2);

const SEALED = {
  messages: ['envelope', 'content'],
  suppressions: ['recipient'],
  devices: ['details'],
  events: ['data'],
  webhook_endpoints: ['settings'],
} as const;

const all = new AsyncDisposableStack();
let databaseUrl: string;
let pool: Pool;
let providers: Readonly<Record<string, string>>;

beforeAll(async () => {
  databaseUrl = all.use(await createDatabase()).url;
  const log = createLogger('test', 'silent');
  pool = createPool({ url: databaseUrl, schema: 'communication', maxConnections: 2, log });
  all.defer(() => pool.end());
  const smtp = { name: 'post', kind: 'smtp', host: '127.0.0.1', port: 1, tls: 'none', bounceDomain: 'shop.example' };
  const smpp = { name: 'centre', kind: 'smpp', host: '127.0.0.1', port: 1, systemId: 'a', password: '', sender: '1' };
  providers = await writeProviders({
    email: { from: { address: 'shop@shop.example' }, providers: [smtp] },
    sms: { providers: [smpp] },
  });
});

afterAll(() => all.disposeAsync());

const start = (...keys: readonly { readonly id: string; readonly key: string }[]): Promise<CommunicationService> =>
  startCommunication({ databaseUrl, keys, settings: providers });

/** How many sealed values do not begin with the id of a key. */
async function sealedOtherwise(id: string): Promise<Readonly<Record<string, number>>> {
  const head = Buffer.concat([Buffer.of(id.length), Buffer.from(id)]);
  const counts: Record<string, number> = {};
  for (const [table, columns] of Object.entries(SEALED)) {
    for (const column of columns) {
      const { rows } = await pool.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM ${table} WHERE substring(${column} FROM 1 FOR $2) <> $1`,
        [head, head.length],
      );
      counts[`${table}.${column}`] = rows[0]?.count ?? -1;
    }
  }
  return counts;
}

async function fill(shop: Caller): Promise<string> {
  const sendAt = new Date(Date.now() + 86_400_000).toISOString();
  const mail = { to: 'Ana@example.com', subject: 'Hello', text: 'Good day', sendAt };
  const sent = await shop('POST', '/emails', { body: mail });
  expect(sent.status).toBe(202);
  expect((await shop('PUT', '/suppressions/+27821234567')).status).toBe(201);
  const device = { platform: 'fcm', user: 'ana' };
  expect((await shop('PUT', `/devices/${'a'.repeat(40)}`, { body: device })).status).toBe(201);
  const endpoint = { url: 'https://shop.example/hook', eventTypes: ['message.sent'] };
  expect((await shop('POST', '/webhook-endpoints', { body: endpoint })).status).toBe(201);
  return String(sent.body?.['id']);
}

test('what an older key sealed and indexed is sealed with the newest, and the older can go', {
  timeout: 90_000,
}, async () => {
  const first = await start(ONE);
  const id = await fill(await first.callerOf('shop'));
  await first[Symbol.asyncDispose]();
  const both = await start(TWO, ONE);
  await vi.waitFor(async () => expect(new Set(Object.values(await sealedOtherwise(TWO.id)))).toEqual(new Set([0])), {
    timeout: 30_000,
    interval: 250,
  });
  await both[Symbol.asyncDispose]();
  await using last = await start(TWO);
  const shop = await last.callerOf('shop');
  expect((await shop('GET', `/messages/${id}`)).body).toMatchObject({ to: 'Ana@example.com', status: 'scheduled' });
  expect((await shop('GET', '/messages?to=ana@example.com')).body).toMatchObject({ total: 1 });
  expect((await shop('GET', '/suppressions')).body).toMatchObject({ suppressions: [{ recipient: '+27821234567' }] });
  const sms = { to: '+27821234567', message: 'Hello' };
  expect((await shop('POST', '/sms', { body: sms })).body).toMatchObject({ status: 'suppressed' });
  expect((await shop('PUT', `/devices/${'a'.repeat(40)}`, { body: { platform: 'fcm' } })).status).toBe(200);
  expect((await shop('GET', '/webhook-endpoints')).body).toMatchObject({
    webhookEndpoints: [{ url: 'https://shop.example/hook' }],
  });
});

const tableWith = (...keys: readonly { readonly id: string; readonly key: string }[]) => {
  const parsed = parseVaultKeys(JSON.stringify({ keys }));
  return createSuppressionTable({
    pool: () => pool,
    vault: createVault(parsed),
    index: createBlindIndex(parsed, 'recipient'),
  });
};

const count = async () => {
  const { rows } = await pool.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM suppressions WHERE subject = 'twins'",
  );
  return rows[0]?.count;
};

test('a row that is there under both keys becomes one, whoever writes it', async () => {
  const addressee = { subject: 'twins', channel: 'email', recipient: 'ana@example.com' } as const;
  const entry = { ...addressee, reason: 'complaint', scope: 'all', messageId: undefined } as const;
  // As replicas of before and after an upgrade write.
  await tableWith(ONE).add(entry);
  await tableWith(TWO).add(entry);
  expect(await count()).toBe(2);
  const both = tableWith(TWO, ONE);
  const added = await Promise.all(Array.from({ length: 10 }, () => both.add(entry)));
  expect(added.every(({ isNew }) => !isNew)).toBe(true);
  expect(await count()).toBe(1);
  await tableWith(ONE).add(entry);
  all.use(await start(TWO, ONE));
  await expect.poll(count, { timeout: 20_000 }).toBe(1);
  expect(await both.reasonFor(addressee, 'transactional')).toBeDefined();
  expect(await tableWith(TWO).reasonFor(addressee, 'transactional')).toBeDefined();
});
