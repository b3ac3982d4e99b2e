import { createRetention } from '@rollcall/communication/store/retention.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const stack = new AsyncDisposableStack();
let pool: Pool;
let ana: Caller;

beforeAll(async () => {
  const databaseUrl = stack.use(await createDatabase()).url;
  // Nobody listens there, so that a mail waits until it is cancelled.
  const smtp = { name: 'none', kind: 'smtp', host: '127.0.0.1', port: 1, tls: 'none', bounceDomain: 'shop.example' };
  const providers = { email: { from: { address: 'shop@shop.example' }, providers: [smtp] } };
  const service = stack.use(await startCommunication({ databaseUrl, settings: await writeProviders(providers) }));
  pool = createPool({
    url: databaseUrl,
    schema: 'communication',
    maxConnections: 2,
    log: createLogger('test', 'silent'),
  });
  stack.defer(() => pool.end());
  ana = await service.callerOf('ana');
});

afterAll(() => stack.disposeAsync());

async function scheduled(): Promise<string> {
  const sendAt = new Date(Date.now() + 3_600_000).toISOString();
  const body = { to: 'lindiwe@example.com', subject: 'Your order', text: 'The code is 7391', tags: ['a', 'b'], sendAt };
  const answer = await ana('POST', '/emails', { body });
  return String(answer.body?.['id']);
}

async function age(id: string, days: number): Promise<void> {
  const at = new Date(Date.now() - days * 24 * 3_600_000);
  await pool.query('UPDATE messages SET created_at = $2 WHERE id = $1', [id, at]);
  await pool.query('UPDATE message_tags SET created_at = $2 WHERE id = $1', [id, at]);
}

test('what messages say is dropped, then messages; what is to be sent is kept however old it is', async () => {
  const retention = createRetention({ pool: () => pool, contentDays: 7, messageDays: 90 });
  const [waiting, young, old, ancient] = [await scheduled(), await scheduled(), await scheduled(), await scheduled()];
  for (const id of [young, old, ancient]) await ana('POST', `/messages/${id}/cancel`);
  await age(waiting, 100);
  await age(young, 6);
  await age(old, 8);
  await age(ancient, 100);
  expect(await retention.contents(10)).toBe(2);
  expect(await retention.contents(10)).toBe(0);
  expect(await retention.messages(10)).toBe(1);
  const { rows } = await pool.query<{ id: string; has: boolean }>(
    'SELECT id, content IS NOT NULL AS has FROM messages ORDER BY created_at',
  );
  expect(rows).toEqual([
    { id: waiting, has: true },
    { id: old, has: false },
    { id: young, has: true },
  ]);
  expect((await ana('GET', `/messages/${old}`)).body).toMatchObject({ status: 'cancelled', to: 'lindiwe@example.com' });
  expect((await ana('GET', `/messages/${ancient}`)).status).toBe(404);
  const { rows: tagged } = await pool.query('SELECT id, tag FROM message_tags ORDER BY created_at, tag');
  expect(tagged).toEqual([waiting, old, young].flatMap((of) => ['a', 'b'].map((tag) => ({ id: of, tag }))));
  expect((await ana('GET', '/messages?tag=b')).body).toMatchObject({ total: 3 });
});

test('nothing of a message is in the database in clear', async () => {
  const id = await scheduled();
  const { rows } = await pool.query<{ text: string }>(
    `SELECT concat_ws(' ', messages::text, encode(envelope, 'escape'), encode(content, 'escape')) AS text
     FROM messages WHERE id = $1`,
    [id],
  );
  const [row] = rows;
  expect(row?.text).toContain(id);
  for (const part of ['lindiwe', 'order', '7391']) expect(row?.text).not.toContain(part);
});
