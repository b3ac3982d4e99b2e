import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type SmsFixture, startSmsFixture } from './sms-fixture.ts';

let fixture: SmsFixture;

beforeAll(async () => {
  fixture = await startSmsFixture();
});

afterAll(() => fixture[Symbol.asyncDispose]());

beforeEach(async () => {
  await fixture.twilio.reset();
  await fixture.bulksms.reset();
});

const statusOf = (sent: Parameters<SmsFixture['message']>[0]) => async () => (await fixture.message(sent))['status'];

/** Each test has calls of one provider fail in a row, and its breaker needs to close again. */
async function untilAvailable(name: string): Promise<void> {
  await expect
    .poll(
      async () => {
        const { body } = await fixture.ana('GET', '/providers');
        const { providers } = body as { providers: { name: string; status: string }[] };
        return providers.find((each) => each.name === name)?.status;
      },
      { timeout: 30_000 },
    )
    .toBe('available');
}

const taken = (provider: 'twilio' | 'bulksms') => fixture[provider].requests().filter(({ isAccepted }) => isAccepted);

describe('a provider without an idempotency key', () => {
  test.each([
    { kind: 'accept-and-hang' },
    { kind: 'garbage' },
    { kind: 'half-body' },
    { kind: 'reset' },
    { kind: 'status', status: 500, isTaken: true },
  ] as const)('that took a message and says $kind is not asked again; its report decides', async (fault) => {
    fixture.twilio.addFaults({ ...fault, times: 1 });
    fixture.twilio.addFaults({ kind: 'delayed', delayMs: 4000, times: 1 });
    const sent = await fixture.send('twilio');
    await expect.poll(statusOf(sent)).toBe('delivered');
    const unknown = expect.objectContaining({ type: 'message.unknown' });
    expect(await fixture.message(sent)).toMatchObject({ events: expect.arrayContaining([unknown]) });
    expect(fixture.twilio.requests()).toHaveLength(1);
    expect(await fixture.message(sent)).toMatchObject({ attempts: [{ status: 'accepted' }] });
  });

  test('leaves the message unknown without a report, until its sender asks for it again', async () => {
    fixture.twilio.addFaults({ kind: 'accept-and-hang', times: 1 }, { kind: 'never', times: 1 });
    const sent = await fixture.send('twilio');
    await expect.poll(statusOf(sent)).toBe('unknown');
    const path = `/messages/${String(sent.body?.['id'])}`;
    expect((await fixture.ana('POST', `${path}/cancel`)).status).toBe(409);
    expect((await fixture.ana('POST', `${path}/retry`)).body).toMatchObject({ status: 'queued' });
    await expect.poll(statusOf(sent)).toBe('delivered');
    expect(await fixture.message(sent)).toMatchObject({ attempts: [{ status: 'unknown' }, { status: 'accepted' }] });
  });

  test.each([1, new Date(Date.now() + 1000).toUTCString()])(
    'that says 429 and Retry-After %s is asked again then, and no sooner',
    async (retryAfter) => {
      await untilAvailable('twilio');
      fixture.twilio.addFaults({ kind: 'status', status: 429, retryAfter, times: 1 });
      const sent = await fixture.send('twilio');
      await expect.poll(statusOf(sent)).toBe('delivered');
      const [first, second, ...more] = fixture.twilio.requests();
      expect(more).toEqual([]);
      const isDate = typeof retryAfter === 'string';
      const pausedMs = Number(second?.at) - Number(first?.at);
      expect(pausedMs).toBeGreaterThanOrEqual(isDate ? 0 : 1000);
    },
  );
});

test('who waits for the first attempt gets its outcome once it is known', async () => {
  await untilAvailable('twilio');
  fixture.twilio.addFaults({ kind: 'status', status: 429, retryAfter: 15, times: 1 });
  const startedMs = performance.now();
  const sent = await fixture.send('twilio', {}, { prefer: 'wait=14' });
  expect(performance.now() - startedMs).toBeLessThan(12_000);
  expect(sent.body).toMatchObject({ status: 'queued', reason: 'rate-limited', nextAttemptAt: expect.any(String) });
  expect((await fixture.ana('POST', `/messages/${String(sent.body?.['id'])}/cancel`)).status).toBe(200);
  await untilAvailable('twilio');
});

describe('a retry', () => {
  test('whose answer was lost in a crash has its effect once, whatever came of it', async () => {
    await untilAvailable('twilio');
    fixture.twilio.addFaults({ kind: 'accept-and-hang', times: 1 }, { kind: 'never', times: 1 });
    const sent = await fixture.send('twilio');
    await expect.poll(statusOf(sent)).toBe('unknown');
    const path = `/messages/${String(sent.body?.['id'])}/retry`;
    const headers = { 'idempotency-key': 'retry-1' };
    expect((await fixture.ana('POST', path, { headers })).status).toBe(200);
    await expect.poll(statusOf(sent)).toBe('delivered');
    // What a replica leaves that dies before it keeps the answer, once its claim has ended.
    await fixture.pool.query("UPDATE idempotency_keys SET outcome = NULL, claimed_until = now() WHERE key = 'retry-1'");
    const again = await fixture.ana('POST', path, { headers });
    expect([again.status, again.body?.['status']]).toEqual([200, 'delivered']);
    expect((await fixture.ana('POST', path, { headers: { 'idempotency-key': 'retry-2' } })).status).toBe(409);
    expect(taken('twilio')).toHaveLength(2);
  });
});

test('a message that has tried each provider that is left is tried again, and waits for no other', async () => {
  const sent = await fixture.send('twilio', { sendAt: new Date(Date.now() + 3_600_000).toISOString() });
  await fixture.pool.query(
    "UPDATE messages SET tried = '{gone,twilio}', send_at = now(), due_at = now() WHERE id = $1",
    [sent.body?.['id']],
  );
  await expect.poll(statusOf(sent)).toBe('delivered');
});

test.each(['twilio', 'bulksms'] as const)('a message is sent whose id at %s ends in no character', async (name) => {
  await untilAvailable(name);
  fixture[name].addFaults({ kind: 'broken-ids', times: 1 }, { kind: 'never', times: 1 });
  const sent = await fixture.send(name);
  await expect.poll(statusOf(sent)).toBe('sent');
  expect(await fixture.message(sent)).toMatchObject({ attempts: [{ status: 'accepted' }] });
});

describe('a provider that knows a repetition', () => {
  test.each([
    { kind: 'accept-and-hang' },
    { kind: 'garbage' },
    { kind: 'status', status: 500, isTaken: true },
  ] as const)('is asked again after $kind, and sends one message', async (fault) => {
    fixture.bulksms.addFaults({ ...fault, times: 2 }, { kind: 'never', times: 1 });
    const sent = await fixture.send('bulksms');
    await expect.poll(statusOf(sent)).toBe('sent');
    expect(await fixture.message(sent)).toMatchObject({ attempts: [{ status: 'accepted' }] });
    const answer = await fetch(`${fixture.bulksms.url}/_control/state`);
    expect(await answer.json()).toMatchObject({ messages: [expect.anything()], deduplicationIds: [expect.anything()] });
  });
});

describe('another provider', () => {
  test('gets the message at once where the first surely took nothing', async () => {
    fixture.bulksms.addFaults({ kind: 'status', status: 503, times: 1 });
    const sent = await fixture.send('both');
    await expect.poll(statusOf(sent)).toBe('delivered');
    expect(await fixture.message(sent)).toMatchObject({
      provider: 'twilio',
      attempts: [
        { provider: 'bulksms', status: 'failed', reason: 'not-taken', detail: '503' },
        { provider: 'twilio', status: 'accepted' },
      ],
    });
  });

  test('does not get it where nobody knows', async () => {
    fixture.bulksms.addFaults({ kind: 'accept-and-hang', times: 1 }, { kind: 'never', times: 1 });
    const sent = await fixture.send('both');
    await expect.poll(statusOf(sent)).toBe('sent');
    expect(taken('twilio')).toEqual([]);
    expect(await fixture.message(sent)).toMatchObject({ provider: 'bulksms' });
  });
});

test('a provider that fails for a while is spared, and what waited is sent once it works', async () => {
  // Five open its breaker; each further one doubles the pause.
  fixture.twilio.addFaults({ kind: 'status', status: 503, times: 6 });
  const sent = await Promise.all(Array.from({ length: 8 }, () => fixture.send('twilio')));
  for (const each of sent) await expect.poll(statusOf(each), { timeout: 30_000 }).toBe('delivered');
  expect(taken('twilio')).toHaveLength(8);
});
