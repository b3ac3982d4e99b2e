import { randomBytes, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { DueMessage, MessageStore, SendingStore } from '@rollcall/communication/domain/message-store.ts';
import type { NewMessage } from '@rollcall/communication/domain/messages.ts';
import type { ReportedMessages } from '@rollcall/communication/domain/reports.ts';
import { messageStates } from '@rollcall/communication/domain/states.ts';
import { createMessageTable } from '@rollcall/communication/store/messages.ts';
import { createReportedMessages } from '@rollcall/communication/store/reported-messages.ts';
import { createSendingTable } from '@rollcall/communication/store/sending.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createEventRecorder } from '@rollcall/platform/events/events.ts';
import { migrate, platformMigrations } from '@rollcall/platform/postgres/migrate.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';

const LARGE = 'x'.repeat(300 * 1024);
const accepted = { event: 'accepted', dueInMs: undefined } as const;
const log = createLogger('test', 'silent');
const stack = new AsyncDisposableStack();
let pool: Pool;
let messages: MessageStore;
let sending: SendingStore;
let reported: ReportedMessages;

beforeAll(async () => {
  const { url } = stack.use(await createDatabase());
  pool = createPool({ url, schema: 'communication', maxConnections: 10, log });
  stack.defer(() => pool.end());
  const own = fileURLToPath(new URL('../../services/communication/migrations', import.meta.url));
  await migrate({ pool, schema: 'communication', directories: [platformMigrations, own], log });
  const keys = [{ id: 'one', key: randomBytes(32) }];
  const vault = createVault(keys);
  const recordEvents = createEventRecorder(
    vault,
    messageStates.map((state) => `message.${state}`),
  );
  const deps = { pool: () => pool, vault, recordEvents };
  const recipients = createBlindIndex(keys, 'recipient');
  messages = createMessageTable({ ...deps, recipients });
  reported = createReportedMessages({ ...deps, recipients });
  sending = createSendingTable({ ...deps, clock: systemClock });
});

afterAll(() => stack.disposeAsync());

beforeEach(async () => void (await pool.query('TRUNCATE messages, message_tags, events CASCADE')));

function message({ text = 'Good day', tags = [] }: { text?: string; tags?: readonly string[] } = {}): NewMessage {
  const to = '+27821234567';
  return {
    id: randomUUID(),
    subject: 'shop',
    state: 'queued',
    reason: undefined,
    category: 'transactional',
    template: undefined,
    tags,
    envelope: { to, metadata: {} },
    content: { channel: 'sms', to, text },
    sendAt: undefined,
    createdAt: new Date(),
    expiresAt: new Date(Date.now() + 3_600_000),
  };
}

async function begunOf(texts: readonly string[]): Promise<readonly DueMessage[]> {
  for (const text of texts) await messages.insert(message({ text }));
  const due = await sending.take('sms', texts.length);
  const begun = await Promise.all(due.map((each) => sending.begin(each, 'twilio', 30_000)));
  const sent = begun.flatMap((each) => (each?.content?.channel === 'sms' ? each.content.text : []));
  expect([...sent].sort()).toEqual([...texts].sort());
  return due;
}

/** How many transactions wrote the messages last. */
async function transactions(): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('SELECT count(DISTINCT xmin::text)::int AS count FROM messages');
  return rows[0]?.count ?? 0;
}

async function count(table: 'messages' | 'message_tags' | 'events'): Promise<number> {
  const { rowCount } = await pool.query(`SELECT FROM ${table}`);
  return rowCount ?? 0;
}

test('messages that come together are stored by one statement', async () => {
  await Promise.all(Array.from({ length: 10 }, () => messages.insert(message({ tags: ['a', 'b'] }))));
  expect([await count('messages'), await count('message_tags'), await count('events')]).toEqual([10, 20, 10]);
  expect(await transactions()).toBe(1);
});

test('one that PostgreSQL does not take is the only one that is not stored', async () => {
  const all = [message(), message({ tags: ['no text of PostgreSQL\0'] }), message({ tags: ['a'] })];
  const results = await Promise.allSettled(all.map((each) => messages.insert(each)));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect([await count('messages'), await count('message_tags'), await count('events')]).toEqual([2, 1, 2]);
});

test('calls of a provider are begun by one statement, but for those whose messages are large', async () => {
  await begunOf(['a', LARGE, 'b', LARGE, 'c', LARGE]);
  expect(await transactions()).toBe(4);
});

test('an id of a provider that no index takes is known all the same', async () => {
  const [due] = await begunOf(['a']);
  const providerId = randomBytes(30_000).toString('hex');
  if (due === undefined) throw new Error('nothing is due');
  expect(await sending.finish(due, { number: 1, event: 'accepted', providerId }, accepted)).toBe(true);
  expect(await reported.find('twilio', { providerId })).toMatchObject({ id: due.id });
  expect(await reported.find('twilio', { providerId: `${providerId}0` })).toBeUndefined();
});

test('an end that PostgreSQL does not take is the only one that is not written down', async () => {
  const due = await begunOf(['a', 'b', 'c']);
  const ends = due.map((each, number) =>
    sending.finish(each, { number: 1, event: 'accepted', providerId: number === 1 ? '\0' : 'id' }, accepted),
  );
  expect((await Promise.allSettled(ends)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  const { rows } = await pool.query('SELECT state FROM messages ORDER BY state');
  expect(rows).toEqual([{ state: 'sending' }, { state: 'sent' }, { state: 'sent' }]);
});
