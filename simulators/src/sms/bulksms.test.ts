import { systemClock } from '@rollcall/platform/clock.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Simulator } from '../simulator.ts';
import { type Receiver, startReceiver } from '../testing/receiver.ts';
import { startBulkSms } from './bulksms.ts';

const TO = '+27821234567';
const AUTHORIZATION = `Basic ${Buffer.from('id:secret').toString('base64')}`;
const HOUR_MS = 3_600_000;

let simulator: Simulator;
let receiver: Receiver;
let now: Date;

beforeEach(async () => {
  receiver = await startReceiver();
  now = new Date('2026-11-20T10:00:00Z');
  simulator = await startBulkSms({
    tokenId: 'id',
    tokenSecret: 'secret',
    webhookUrl: `${receiver.url}/hooks/bulksms/s3cret`,
    credits: 20,
    retryDelaysMs: [],
    clock: { ...systemClock, now: () => now },
  });
});

afterEach(async () => {
  await simulator.stop();
  await receiver[Symbol.asyncDispose]();
});

describe('a submission', () => {
  test('is accepted, and found by id, submission and our own id', async () => {
    const { status, body } = await submit({ to: TO, body: 'Hello', userSuppliedId: 'ours-1' });
    expect(status).toBe(201);
    const message = { to: '27821234567', body: 'Hello', type: 'SENT', userSuppliedId: 'ours-1', encoding: 'TEXT' };
    const accepted = { id: 'ACCEPTED.null', type: 'ACCEPTED', subtype: null };
    expect(body).toMatchObject([{ ...message, status: accepted, numberOfParts: null }]);
    const [{ id, submission }] = body;
    const delivered = { ...message, id, status: { id: 'DELIVERED.null', type: 'DELIVERED' }, numberOfParts: 1 };
    expect((await call('GET', `/v1/messages/${id}`)).body).toMatchObject(delivered);
    for (const filter of ['userSuppliedId=ours-1', `submission.id=${submission.id}&type=SENT`]) {
      const found = await call('GET', `/v1/messages?filter=${encodeURIComponent(filter)}`);
      expect(found.body).toMatchObject([delivered]);
    }
    expect((await call('GET', '/v1/messages?filter=userSuppliedId%3Dours-2')).body).toEqual([]);
    expect((await call('GET', '/v1/messages?filter=colour%3Dred')).status).toBe(400);
    expect((await call('GET', '/v1/messages/1')).status).toBe(404);
  });

  test('with a deduplication id is made once, for twelve hours', async () => {
    const [first, ...same] = await Promise.all([once(), once(), once(), once()]);
    for (const answer of same) expect(answer).toEqual(first);
    now = new Date(now.getTime() + 11 * HOUR_MS);
    expect(await once()).toEqual(first);
    now = new Date(now.getTime() + HOUR_MS);
    const [{ id }] = await once();
    expect(id).not.toBe(first[0].id);
    expect((await call('GET', '/v1/messages')).body).toHaveLength(2);
  });

  test('without one is made each time', async () => {
    for (const _ of [1, 2]) await submit({ to: TO, body: 'Hello' });
    expect((await call('GET', '/v1/messages')).body).toHaveLength(2);
  });

  test('that was not answered is made once all the same', async () => {
    simulator.addFaults({ kind: 'reset', times: 1 });
    await expect(submit({ to: TO, body: 'Hello' }, '?deduplication-id=7')).rejects.toThrow('fetch failed');
    expect((await submit({ to: TO, body: 'Hello' }, '?deduplication-id=7')).status).toBe(201);
    expect((await call('GET', '/v1/messages')).body).toHaveLength(1);
  });

  test.each([
    { query: '', text: 'Môre `x`', sent: 'M?re ?x?', encoding: 'TEXT' },
    { query: '?auto-unicode=false', text: 'ê', sent: '?', encoding: 'TEXT' },
    { query: '?auto-unicode=true', text: 'ê', sent: 'ê', encoding: 'UNICODE' },
    { query: '?auto-unicode=true', text: 'é€', sent: 'é€', encoding: 'TEXT' },
  ])('of "$text" with "$query" is sent as "$sent"', async ({ query, text, sent, encoding }) => {
    expect((await submit({ to: TO, body: text }, query)).body).toMatchObject([{ body: sent, encoding }]);
  });

  test.each([
    { most: undefined, characters: 460, left: 459 },
    { most: 1, characters: 161, left: 153 },
    { most: 10, characters: 460, left: 460 },
  ])('of $characters characters is cut to $left by at most $most parts', async ({ most, characters, left }) => {
    const parts = most === undefined ? {} : { longMessageMaxParts: most };
    const { body } = await submit({ to: TO, body: 'a'.repeat(characters), ...parts });
    expect(body).toMatchObject([{ body: 'a'.repeat(left) }]);
  });

  test('has entries with recipients of every form', async () => {
    const { body } = await submit([
      { to: [TO, { address: '27820000000' }], body: 'a' },
      { to: { type: 'INTERNATIONAL', address: TO }, from: 'Rollcall', body: 'b' },
      { to: TO, from: { type: 'REPLIABLE' }, body: '0aff', encoding: 'BINARY' },
    ]);
    expect(body.map(({ to, from }: { to: string; from: string | null }) => [to, from])).toEqual([
      ['27821234567', null],
      ['27820000000', null],
      ['27821234567', 'Rollcall'],
      ['27821234567', null],
    ]);
  });

  test.each([
    [{ body: 'a' }],
    [{ to: TO }],
    [{ to: TO, body: '' }],
    [{ to: [], body: 'a' }],
    [{ to: '082 123 4567', body: 'a' }],
    [{ to: TO, body: 'a', from: 'Twelve chars' }],
    [{ to: TO, body: 'a', from: { type: 'SHORTCODE', address: '1234567' } }],
    [{ to: TO, body: 'xyz', encoding: 'BINARY' }],
    [{ to: TO, body: 'a', encoding: 'UTF-8' }],
    [{ to: TO, body: 'a', userSuppliedId: 'a'.repeat(21) }],
    [[]],
    ['text'],
  ])('is refused as a whole for %j', async (entry) => {
    const answer = await submit(Array.isArray(entry) ? entry : [{ to: TO, body: 'good' }, entry]);
    expect(answer).toMatchObject({ status: 400, body: { title: 'Bad Request', status: 400 } });
    expect((await call('GET', '/v1/messages')).body).toEqual([]);
  });

  test.each(['x', '2147483648', '1.5', ''])('is refused for the deduplication id "%s"', async (id) => {
    expect((await submit({ to: TO, body: 'a' }, `?deduplication-id=${id}`)).status).toBe(400);
  });

  test('is refused without credentials, and without credits', async () => {
    const stranger = await fetch(`${simulator.url}/v1/messages`, { method: 'POST', body: '{}' });
    expect(stranger.status).toBe(401);
    const many = Array.from({ length: 21 }, () => ({ to: TO, body: 'a' }));
    expect(await submit(many)).toMatchObject({ status: 403, body: { status: 403 } });
    expect((await submit(many.slice(1))).status).toBe(201);
  });
});

describe('the webhook', () => {
  test('is called at the address that was said last', async () => {
    simulator.setWebhook(`${receiver.url}/elsewhere`);
    await submit({ to: TO, body: 'a' });
    await simulator.idle();
    expect(receiver.taken.map(({ target }) => target)).toEqual(['/elsewhere', '/elsewhere']);
  });

  test.each([
    [undefined, [['SENT.null'], ['DELIVERED.null']]],
    ['SENT', [['SENT.null']]],
    ['UNKNOWN', [['SENT.null'], ['UNKNOWN.null']]],
    ['FAILED.EXPIRED', [['SENT.null'], ['FAILED.EXPIRED']]],
    ['FAILED.NOT_SENT', [['FAILED.NOT_SENT']]],
  ])('gets arrays of a message that ends as %s', async (outcome, expected) => {
    if (outcome !== undefined) simulator.setOutcomes({ [TO]: outcome });
    await submit({ to: TO, body: 'a' });
    await simulator.idle();
    expect(statuses()).toEqual(expected);
    expect(receiver.taken[0]?.target).toBe('/hooks/bulksms/s3cret');
  });

  test('gets ten messages at most, and none that cannot be delivered as if it were', async () => {
    const landline = '+27114471234';
    await submit([{ to: landline, body: 'a' }, ...Array.from({ length: 11 }, () => ({ to: TO, body: 'a' }))]);
    await simulator.idle();
    expect(updates().map((update) => update.length)).toEqual([10, 2, 10, 1]);
    expect(statuses()[0]?.[0]).toBe('FAILED.NOT_SENT');
  });

  test.each([
    ['ERRORS', 0],
    ['NONE', 0],
  ])('gets of deliveryReports %s no success', async (deliveryReports, calls) => {
    await submit({ to: TO, body: 'a', deliveryReports });
    await simulator.idle();
    expect(receiver.taken).toHaveLength(calls);
  });

  test('gets one at a wrong address where it is to be forged', async () => {
    simulator.addFaults({ kind: 'bad-signature' });
    await submit({ to: TO, body: 'a' });
    await simulator.idle();
    expect(receiver.taken.map(({ target }) => target)).not.toContain('/hooks/bulksms/s3cret');
  });
});

const updates = () => receiver.taken.map(({ body }): { status: { id: string } }[] => JSON.parse(body));
const statuses = () => updates().map((update) => update.map(({ status }) => status.id));
const once = async () => (await submit({ to: TO, body: 'Hello' }, '?deduplication-id=-2147483647')).body;
const submit = (value: unknown, query = '') => call('POST', `/v1/messages${query}`, value);

async function call(method: 'GET' | 'POST', path: string, value?: unknown) {
  const headers = { authorization: AUTHORIZATION, 'content-type': 'application/json' };
  const body = value === undefined ? {} : { body: JSON.stringify(value) };
  const answer = await fetch(`${simulator.url}${path}`, { method, headers, ...body });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}
