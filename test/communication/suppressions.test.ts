import { randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  type SuppressionReason,
  scopeOfReason,
  suppressionReasons,
} from '@rollcall/communication/domain/suppressions.ts';
import { createSuppressionTable } from '@rollcall/communication/store/suppressions.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import { array, assert, asyncProperty, constant, constantFrom, nat, oneof, option, record } from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import {
  type Caller,
  type CommunicationService,
  codeOf,
  faultPaths,
  startCommunication,
} from './communication-service.ts';

const stack = new AsyncDisposableStack();
let communication: CommunicationService;
let shop: Caller;
let pool: Pool;

beforeAll(async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  communication = stack.use(await startCommunication({ databaseUrl }));
  pool = createPool({
    url: databaseUrl,
    schema: 'communication',
    maxConnections: 4,
    log: createLogger('test', 'silent'),
  });
  stack.defer(() => pool.end());
  shop = await communication.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

const oldKey = { id: 'old', key: randomBytes(32) };
const newKey = { id: 'new', key: randomBytes(32) };

function tableWith(...keys: { id: string; key: Uint8Array }[]) {
  return createSuppressionTable({
    pool: () => pool,
    vault: createVault(keys),
    index: createBlindIndex(keys, 'recipient'),
  });
}

test('a recipient is suppressed by hand, found, and sent to again', async () => {
  const made = await shop('PUT', '/suppressions/Ana.B@EXAMPLE.com');
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({
    recipient: 'Ana.B@example.com',
    channel: 'email',
    scope: 'all',
    reason: 'manual',
    messageId: null,
  });
  const narrowed = await shop('PUT', '/suppressions/ana.b@example.com?channel=email', {
    body: { scope: 'marketing' },
  });
  expect([narrowed.status, narrowed.body]).toEqual([200, { ...made.body, scope: 'marketing' }]);
  expect((await shop('PUT', '/suppressions/%2B27821234567')).body).toMatchObject({
    recipient: '+27821234567',
    channel: 'sms',
  });
  const found = await shop('GET', '/suppressions?recipient=ANA.b@example.com');
  expect(found.body).toMatchObject({ total: 1, suppressions: [narrowed.body] });
  expect((await shop('GET', '/suppressions?channel=sms')).body).toMatchObject({ total: 1 });
  expect((await shop('GET', '/suppressions?reason=stop')).body).toMatchObject({ total: 0 });
  expect((await shop('DELETE', '/suppressions/ana.b@example.com')).status).toBe(204);
  expect((await shop('DELETE', '/suppressions/ana.b@example.com')).status).toBe(404);
});

test('suppressions are of their subject alone, but for who administers them', async () => {
  await shop('PUT', '/suppressions/own@example.com');
  const other = await communication.callerOf('other');
  expect((await other('GET', '/suppressions')).body).toMatchObject({ total: 0 });
  const missing = await other('DELETE', '/suppressions/none@example.com');
  for (const [method, path] of [
    ['DELETE', '/suppressions/own@example.com'],
    ['DELETE', '/suppressions/own@example.com?subject=shop'],
    ['PUT', '/suppressions/own@example.com?subject=shop'],
    ['GET', '/suppressions?subject=shop'],
  ] as const) {
    const answer = await other(method, path);
    expect([answer.status, answer.body]).toEqual([404, missing.body]);
  }
  const reader = await communication.callerOf('shop', 'messages:read');
  expect((await reader('PUT', '/suppressions/own@example.com')).status).toBe(403);
  const admin = await communication.callerOf('root', 'messages:read suppressions:admin');
  expect((await admin('GET', '/suppressions?subject=shop&recipient=own@example.com')).body).toMatchObject({ total: 1 });
});

test.each([
  'nobody',
  'a@b',
  'a,b@example.com',
  'a@example.com%0D%0ABcc:e@x.example',
  '%00@example.com',
  '%2B27114471234',
  '%2B1',
  '0821234567',
  `${'a'.repeat(65)}@example.com`,
])('%s is no recipient', async (recipient) => {
  for (const answer of [
    await shop('PUT', `/suppressions/${recipient}`),
    await shop('DELETE', `/suppressions/${recipient}`),
  ]) {
    expect([answer.status, codeOf(answer)]).toEqual([400, 'INVALID_REQUEST']);
    expect(faultPaths(answer)).toEqual(['path/recipient']);
  }
  expect((await shop('GET', `/suppressions?recipient=${recipient}`)).status).toBe(400);
});

test('a recipient of another channel, and members that nobody knows, are refused', async () => {
  const answer = await shop('PUT', '/suppressions/a@example.com?channel=sms');
  expect([answer.status, faultPaths(answer)]).toEqual([400, ['path/recipient']]);
  const query = await shop('PUT', '/suppressions/a@example.com?subject=&chanel=sms&scope=all');
  expect(faultPaths(query)).toEqual(['query/chanel', 'query/scope', 'query/subject']);
  const body = await shop('PUT', '/suppressions/a@example.com', { body: { scope: 'some', bogus: 1 } });
  expect([body.status, faultPaths(body)]).toEqual([400, ['body/bogus', 'body/scope']]);
});

test('neither the database nor the log has an address', async () => {
  await shop('PUT', '/suppressions/secret.person@example.com');
  await shop('PUT', '/suppressions/secret.person@example.com?channel=sms');
  await shop('GET', '/suppressions?recipient=secret.person@example.com');
  const { rows } = await pool.query(`SELECT s::text AS text FROM suppressions s`);
  expect(rows.length).toBeGreaterThan(0);
  const plain = Buffer.from('secret.person').toString('hex');
  for (const { text } of rows) {
    expect(text).not.toContain('secret.person');
    expect(text).not.toContain(plain);
  }
  expect(await readFile(communication.service.logFile, 'utf8')).not.toContain('secret.person');
});

const recipients = ['ana@example.com', 'ANA@example.com', 'bob@example.com'] as const;
const operation = oneof(
  record({
    act: constant('add' as const),
    subject: constantFrom('a', 'b'),
    recipient: constantFrom(...recipients),
    reason: constantFrom(...suppressionReasons),
  }),
  record({
    act: constant('remove' as const),
    subject: constantFrom('a', 'b'),
    recipient: constantFrom(...recipients),
    reason: option(constantFrom(...suppressionReasons), { nil: undefined }),
  }),
);

/** What is known of the reasons of a recipient, without a database. */
class Model {
  readonly #reasons = new Map<string, Set<SuppressionReason>>();

  of(subject: string, recipient: string): Set<SuppressionReason> {
    return this.#reasons.getOrInsert(`${subject} ${recipient.toLowerCase()}`, new Set());
  }

  has(subject: string, recipient: string, category: 'transactional' | 'marketing'): boolean {
    return [...this.of(subject, recipient)].some(
      (reason) => category === 'marketing' || scopeOfReason[reason] === 'all',
    );
  }
}

test('whatever is suppressed and sent to again in whatever order, also by a newer key, the reasons that are left decide', async () => {
  await assert(
    asyncProperty(array(operation, { maxLength: 12 }), nat(12), async (operations, rotatedAt) => {
      await pool.query('DELETE FROM suppressions');
      const model = new Model();
      for (const [index, { act, subject, recipient, reason }] of operations.entries()) {
        const table = index < rotatedAt ? tableWith(oldKey) : tableWith(newKey, oldKey);
        const addressee = { subject, channel: 'email', recipient } as const;
        const reasons = model.of(subject, recipient);
        const removed = [...reasons].filter((each) => reason === undefined || each === reason);
        const changed =
          act === 'add'
            ? (await table.add({ ...addressee, reason, scope: scopeOfReason[reason], messageId: randomUUID() })).isNew
            : await table.remove(addressee, { reason });
        expect(changed).toBe(act === 'add' ? removed.length === 0 : removed.length > 0);
        if (act === 'add') reasons.add(reason);
        else for (const each of removed) reasons.delete(each);
      }
      const table = tableWith(newKey, oldKey);
      for (const subject of ['a', 'b']) {
        for (const recipient of recipients) {
          for (const category of ['transactional', 'marketing'] as const) {
            expect((await table.reasonFor({ subject, channel: 'email', recipient }, category)) !== undefined).toBe(
              model.has(subject, recipient, category),
            );
            expect(await table.reasonFor({ subject, channel: 'sms', recipient }, category)).toBeUndefined();
          }
        }
      }
    }),
    { numRuns: 40 },
  );
});

test('of the same suppression twenty times at once one row is left, and a new one works after it was removed', async () => {
  const table = tableWith(newKey, oldKey);
  const addressee = { subject: 'race', channel: 'email', recipient: 'ana@example.com' } as const;
  const entry = { ...addressee, reason: 'hard-bounce', scope: 'all', messageId: randomUUID() } as const;
  const added = await Promise.all(Array.from({ length: 20 }, () => table.add(entry)));
  expect(added.filter(({ isNew }) => isNew)).toHaveLength(1);
  expect(await table.remove(addressee, {})).toBe(true);
  expect(await table.reasonFor(addressee, 'transactional')).toBeUndefined();
  expect(await table.add({ ...entry, messageId: randomUUID() })).toMatchObject({ isNew: true });
  expect(await table.reasonFor(addressee, 'transactional')).toBeDefined();
});
