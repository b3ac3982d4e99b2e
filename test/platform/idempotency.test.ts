import { randomBytes, randomUUID } from 'node:crypto';
import { systemClock } from '@rollcall/platform/clock.ts';
import { commonError } from '@rollcall/platform/common-errors.ts';
import { ServiceError } from '@rollcall/platform/errors.ts';
import {
  type Answer,
  createIdempotency,
  forgetOutcomes,
  type Idempotency,
  type KeyedCall,
} from '@rollcall/platform/postgres/idempotency.ts';
import { migrate, platformMigrations } from '@rollcall/platform/postgres/migrate.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createPruner } from '@rollcall/platform/postgres/pruner.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createDatabase } from '../support/postgres.ts';

const log = createLogger('test', 'silent');
const vaultKeys = [{ id: 'one', key: randomBytes(32) }];
const stack = new AsyncDisposableStack();
let pool: Pool;
let idempotency: Idempotency;

beforeAll(async () => {
  const { url } = stack.use(await createDatabase());
  pool = createPool({ url, schema: 'thing', maxConnections: 8, log });
  stack.defer(() => pool.end());
  await migrate({ pool, schema: 'thing', directories: [platformMigrations], log });
  await pool.query('CREATE TABLE things (id uuid PRIMARY KEY, name text)');
  idempotency = replica();
});

afterAll(() => stack.disposeAsync());

/** @param claimSeconds short where a claim is to end. */
function replica(claimSeconds?: number): Idempotency {
  const index = createBlindIndex(vaultKeys, 'idempotency');
  const deps = { pool: () => pool, vault: createVault(vaultKeys), index, clock: systemClock, log };
  return createIdempotency({ ...deps, ...(claimSeconds === undefined ? {} : { claimSeconds }) });
}

/** An effect that happens once for each id, as a domain function's does. */
async function makeThing(id: string): Promise<Answer> {
  const name = 'one';
  const { rowCount } = await pool.query('INSERT INTO things (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    id,
    name,
  ]);
  return { status: 201, location: `/api/v1/things/${id}`, body: { id, name, isNew: rowCount === 1 } };
}

/** Makes a key older than a day. */
const age = (key: string | undefined) =>
  pool.query(`UPDATE idempotency_keys SET created_at = now() - interval '25 hours' WHERE key = $1`, [key]);

async function countThings(ids: readonly unknown[]): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('SELECT count(*)::int FROM things WHERE id = ANY($1)', [ids]);
  return rows[0]?.count ?? 0;
}

const call = (more: Partial<KeyedCall> = {}): KeyedCall => ({
  subject: 'buyer',
  operation: 'createThing',
  key: randomUUID(),
  request: { a: 1 },
  ...more,
});

test('fifty calls at once with one key have one effect and equal answers', async () => {
  const one = call();
  const replicas = [replica(), replica(), replica()];
  const effect = vi.fn<(id: string) => Promise<Answer>>(async (id) => {
    await sleep(100);
    return makeThing(id);
  });
  const calls = Array.from({ length: 50 }, (_, at) => (replicas[at % 3] ?? idempotency).once(one, effect));
  const answers = await Promise.all(calls);
  expect(effect).toHaveBeenCalledOnce();
  for (const { answer } of answers) expect(answer).toEqual(answers[0]?.answer);
  expect(answers.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
});

test('calls without a key are each an effect of their own', async () => {
  const answers = await Promise.all(
    Array.from({ length: 3 }, () => idempotency.once(call({ key: undefined }), makeThing)),
  );
  expect(await countThings(answers.map(({ answer }) => answer.body['id']))).toBe(3);
});

test.each([
  ['subject', { subject: 'other' }],
  ['operation', { operation: 'createOther' }],
])('the key of another %s is another key', async (_, more) => {
  const one = call();
  const first = await idempotency.once(one, makeThing);
  const second = await idempotency.once({ ...one, ...more }, makeThing);
  expect(second.isReplayed).toBe(false);
  expect(second.answer.body['id']).not.toBe(first.answer.body['id']);
});

test('another request with the key is refused, and the order of members makes none', async () => {
  const one = call({ request: { a: 1, b: { c: 2, d: [1, 2] } } });
  await idempotency.once(one, makeThing);
  const again = await idempotency.once({ ...one, request: { b: { d: [1, 2], c: 2 }, a: 1 } }, makeThing);
  expect(again.isReplayed).toBe(true);
  for (const request of [{ a: 1, b: { c: 2, d: [2, 1] } }, { a: 1 }, undefined]) {
    await expect(idempotency.once({ ...one, request }, makeThing)).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
      kind: { status: 422 },
    });
  }
});

test('also while the first is under way another request is refused at once', async () => {
  const one = call();
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = idempotency.once(one, async (id) => {
    begun.resolve();
    await held.promise;
    return makeThing(id);
  });
  await begun.promise;
  const other = idempotency.once({ ...one, request: {} }, makeThing);
  await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  held.resolve();
  await first;
});

test('who repeats a call that takes long is asked to come back', async () => {
  const one = call();
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const first = idempotency.once(one, async (id) => {
    begun.resolve();
    await held.promise;
    return makeThing(id);
  });
  await begun.promise;
  const repeated = idempotency.once(one, makeThing);
  await expect(repeated).rejects.toMatchObject({
    code: 'IDEMPOTENCY_IN_PROGRESS',
    kind: { status: 409, passes: true },
  });
  held.resolve();
  const { answer } = await first;
  expect(await idempotency.once(one, makeThing)).toEqual({ answer, isReplayed: true });
});

test('a claim left behind ends, and who repeats the call finds the effect by the same id', async () => {
  const one = call();
  let left = '';
  // As a replica that is killed between effect and answer: nothing more is heard of it.
  void replica(1).once(one, async (id) => {
    await makeThing(id);
    left = id;
    return new Promise(() => {});
  });
  await vi.waitFor(() => expect(left).not.toBe(''), { timeout: 30_000 });
  const { answer, isReplayed } = await replica(1).once(one, makeThing);
  expect(isReplayed).toBe(false);
  expect(answer.body).toMatchObject({ id: left, isNew: false });
  expect(await countThings([left])).toBe(1);
});

test('who was slower than its claim changes nothing of the answer of who took it over', async () => {
  const one = call();
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const slow = replica(1).once(one, async (id) => {
    begun.resolve();
    await held.promise;
    return { ...(await makeThing(id)), status: 200 };
  });
  await begun.promise;
  const { answer } = await idempotency.once(one, makeThing);
  held.resolve();
  await slow;
  expect(await idempotency.once(one, makeThing)).toEqual({ answer, isReplayed: true });
});

test('what was answered is forgotten by what it was about, though a call ends later', async () => {
  const about = randomUUID();
  const ended = call({ about });
  const made = await idempotency.once(call(), makeThing);
  await idempotency.once(ended, makeThing);
  const running = call({ about });
  const begun = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const answered = idempotency.once(running, async (id) => {
    begun.resolve();
    await held.promise;
    return makeThing(id);
  });
  await begun.promise;
  await forgetOutcomes(pool, [about, String(made.answer.body['id'])]);
  held.resolve();
  const { answer } = await answered;
  const { rows } = await pool.query('SELECT outcome FROM idempotency_keys WHERE about = $1 OR resource_id = $2', [
    about,
    made.answer.body['id'],
  ]);
  expect(rows).toEqual([{ outcome: null }, { outcome: null }, { outcome: null }]);
  await pool.query('UPDATE idempotency_keys SET claimed_until = now() WHERE about = $1', [about]);
  expect(await idempotency.once(running, makeThing)).toMatchObject({
    isReplayed: false,
    answer: { body: { id: answer.body['id'], isNew: false } },
  });
});

const refused = { status: 402, message: 'refused' };

test('a refusal is an answer, too', async () => {
  const one = call();
  const effect = vi.fn<() => Promise<Answer>>(async () => {
    throw new ServiceError('PAYMENT_FAILED', refused, { details: { reason: 'declined' } });
  });
  const error = { code: 'PAYMENT_FAILED', kind: refused, details: { reason: 'declined' } };
  await expect(idempotency.once(one, effect)).rejects.toMatchObject({ ...error, headers: {} });
  const replayed = { ...error, headers: { 'idempotent-replayed': 'true' } };
  await expect(idempotency.once(one, effect)).rejects.toMatchObject(replayed);
  expect(effect).toHaveBeenCalledOnce();
});

test.each([
  ['503', () => commonError('UNAVAILABLE')],
  ['429', () => new ServiceError('RATE_LIMITED', { status: 429, message: 'too many' })],
  ['an error that nobody foresaw', () => new TypeError('of ours')],
])('after %s the call may be made again, with the same id', async (_, fault) => {
  const one = call();
  const ids: string[] = [];
  const failing = async (id: string) => {
    ids.push(id);
    throw fault();
  };
  await expect(idempotency.once(one, failing)).rejects.toBeInstanceOf(Error);
  const { answer, isReplayed } = await idempotency.once(one, makeThing);
  expect(isReplayed).toBe(false);
  expect(ids).toEqual([answer.body['id']]);
});

test('an answer of 5xx is not kept', async () => {
  const one = call();
  await idempotency.once(one, async () => ({ status: 502, body: {} }));
  expect((await idempotency.once(one, makeThing)).answer.status).toBe(201);
});

test('the effect is told whether its id is new, which it is not where it may have been there before', async () => {
  const told: boolean[] = [];
  const effect = async (_id: string, isNew: boolean): Promise<Answer> => {
    told.push(isNew);
    return { status: 502, body: {} };
  };
  const one = call();
  await idempotency.once(one, effect);
  await idempotency.once(one, effect);
  await age(one.key);
  await idempotency.once(one, effect);
  await idempotency.once(call({ key: undefined }), effect);
  expect(told).toEqual([true, false, true, true]);
});

test('the database holds neither answers nor requests in plain', async () => {
  const one = call({ request: { to: 'secret@example.org' } });
  await idempotency.once(one, async () => ({ status: 201, body: { to: 'secret@example.org' } }));
  const { rows } = await pool.query('SELECT * FROM idempotency_keys WHERE key = $1', [one.key]);
  const [row] = rows as Record<string, unknown>[];
  const bytes = Object.values(row ?? {}).map((value) =>
    Buffer.isBuffer(value) ? value.toString('latin1') : String(value),
  );
  expect(bytes.join(' ')).not.toContain('secret@');
});

test('after a day a key is new', async () => {
  const one = call();
  const first = await idempotency.once(one, makeThing);
  await age(one.key);
  const second = await idempotency.once({ ...one, request: { other: true } }, makeThing);
  expect(second.isReplayed).toBe(false);
  expect(second.answer.body['id']).not.toBe(first.answer.body['id']);
  expect((await idempotency.once({ ...one, request: { other: true } }, makeThing)).isReplayed).toBe(true);
});

test('old keys are forgotten in batches, but none that is in use', async () => {
  const calls = Array.from({ length: 5 }, () => call());
  for (const each of calls) {
    await idempotency.once(each, makeThing);
    await age(each.key);
  }
  await pool.query(`UPDATE idempotency_keys SET claimed_until = now() + interval '20 s' WHERE key = $1`, [
    calls[0]?.key,
  ]);
  expect(await idempotency.prune(3)).toBe(3);
  const pruner = createPruner({ name: 'keys', prune: (limit) => idempotency.prune(limit), log });
  await pruner.start();
  const keys = calls.map(({ key }) => key);
  const left = () => pool.query<{ key: string }>('SELECT key FROM idempotency_keys WHERE key = ANY($1)', [keys]);
  await vi.waitFor(async () => expect((await left()).rows).toEqual([{ key: calls[0]?.key }]), { timeout: 30_000 });
  await pruner.stop();
});
