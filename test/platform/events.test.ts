import { randomBytes, randomUUID } from 'node:crypto';
import { createEventRecorder, eventContext } from '@rollcall/platform/events/events.ts';
import { placeEvents, pruneEvents } from '@rollcall/platform/events/relay.ts';
import { migrate, platformMigrations } from '@rollcall/platform/postgres/migrate.ts';
import { createPool, inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { createVault } from '@rollcall/platform/vault.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';

const log = createLogger('test', 'silent');
const vault = createVault([{ id: 'one', key: randomBytes(32) }]);
const recordEvents = createEventRecorder(vault, ['thing.changed']);
const stack = new AsyncDisposableStack();
let pool: Pool;

class RolledBack extends Error {}

interface Read {
  readonly id: string;
  readonly resource_id: string;
  readonly position: string;
  readonly data: Buffer;
}

beforeAll(async () => {
  const { url } = stack.use(await createDatabase());
  pool = createPool({ url, schema: 'payment', maxConnections: 20, log });
  stack.defer(() => pool.end());
  await migrate({ pool, schema: 'payment', directories: [platformMigrations], log });
  await pool.query('CREATE TABLE things (id uuid PRIMARY KEY, version int NOT NULL); CREATE TABLE notes (text text)');
});

afterAll(() => stack.disposeAsync());

beforeEach(
  async () =>
    void (await pool.query('TRUNCATE events, things, notes CASCADE; UPDATE event_relay SET last_position = 0')),
);

async function addThings(count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await pool.query('INSERT INTO things SELECT id, 0 FROM unnest($1::uuid[]) id', [ids]);
  return ids;
}

/** Changes a thing, by a transaction that may have begun before another one that changes it sooner. */
async function change(id: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query("INSERT INTO notes VALUES ('begun')");
    await sleep(Math.random() * 20);
    const { rows } = await client.query<{ version: number }>(
      'UPDATE things SET version = version + 1 WHERE id = $1 RETURNING version',
      [id],
    );
    const version = rows[0]?.version;
    await recordEvents(client, [{ subject: 'alice', type: 'thing.changed', resourceId: id, data: { version } }]);
    await sleep(Math.random() * 20);
    if (Math.random() < 0.1) throw new RolledBack();
  }).catch((error: unknown) => {
    if (!(error instanceof RolledBack)) throw error;
  });
}

async function readAfter(position: string): Promise<readonly Read[]> {
  const { rows } = await pool.query<Read>(
    'SELECT id, resource_id, position, data FROM events WHERE position > $1 ORDER BY position',
    [position],
  );
  return rows;
}

function versionOf({ id, data }: Read): unknown {
  return JSON.parse(vault.open(data, eventContext(id)).toString()).version;
}

test('who reads on misses nothing, and sees each thing change in its order, while transactions end out of theirs', async () => {
  const things = await addThings(10);
  const read: Read[] = [];
  const over = new AbortController();
  const relays = Array.from({ length: 3 }, async () => {
    while (!over.signal.aborted) {
      await placeEvents(pool, 7);
      await sleep(1);
    }
  });
  const reader = (async () => {
    while (!over.signal.aborted) {
      read.push(...(await readAfter(read.at(-1)?.position ?? '0')));
      await sleep(1);
    }
  })();
  const writers = Array.from({ length: 8 }, async () => {
    for (const thing of Array.from({ length: 60 }, (_, index) => things[index % things.length] ?? '')) {
      await change(thing);
    }
  });
  await Promise.all(writers);
  over.abort();
  await Promise.all([...relays, reader]);
  while ((await placeEvents(pool)) > 0);
  read.push(...(await readAfter(read.at(-1)?.position ?? '0')));

  const { rows } = await pool.query<{ id: string; version: number }>('SELECT id, version FROM things');
  expect(rows.reduce((sum, { version }) => sum + version, 0)).toBeGreaterThan(300);
  for (const { id, version } of rows) {
    const versions = read.filter((each) => each.resource_id === id).map(versionOf);
    expect(versions).toEqual(Array.from({ length: version }, (_, index) => index + 1));
  }
});

test('an event of a transaction that is rolled back is none', async () => {
  const [id = ''] = await addThings(1);
  const event = { subject: 'alice', type: 'thing.changed', resourceId: id, data: {} };
  await expect(
    inTransaction(pool, async (client) => {
      await recordEvents(client, [event]);
      throw new Error('too bad');
    }),
  ).rejects.toThrow('too bad');
  await inTransaction(pool, (client) => recordEvents(client, [event, event]));
  expect(await placeEvents(pool)).toBe(2);
  expect(await placeEvents(pool)).toBe(0);
});

test('events of one call keep their order, and what they say is sealed', async () => {
  const secret = 'order 4711';
  const events = Array.from({ length: 50 }, (_, version) => ({
    subject: 'alice',
    type: 'thing.changed',
    resourceId: randomUUID(),
    data: { version, secret },
  }));
  await inTransaction(pool, (client) => recordEvents(client, events));
  await placeEvents(pool);
  const read = await readAfter('0');
  expect(read.map(versionOf)).toEqual(events.map(({ data }) => data.version));
  expect(read.some(({ data }) => data.includes(secret))).toBe(false);
});

test('events are forgotten after 30 days, and not before they had a position', async () => {
  const event = { subject: 'alice', type: 'thing.changed', resourceId: randomUUID(), data: {} };
  await inTransaction(pool, (client) => recordEvents(client, [event, event, event]));
  await pool.query(
    "UPDATE events SET created_at = now() - interval '31 days' WHERE number < (SELECT max(number) FROM events)",
  );
  expect(await pruneEvents(pool, 10)).toBe(0);
  await placeEvents(pool);
  expect(await pruneEvents(pool, 1)).toBe(1);
  expect(await pruneEvents(pool, 10)).toBe(1);
  expect(await readAfter('0')).toHaveLength(1);
});

test('an event of a kind that nobody named is a mistake of the service', async () => {
  const event = { subject: 'alice', type: 'things.changed', resourceId: randomUUID(), data: {} };
  await expect(inTransaction(pool, (client) => recordEvents(client, [event]))).rejects.toThrow('things.changed');
});
