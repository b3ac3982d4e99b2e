import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const RATE = 5;
const MESSAGES = 45;
const CLOCKS_DIFFER_MS = 50;

test('messages wait for their turn at a provider that has a rate, and each is taken a few times', {
  timeout: 60_000,
}, async () => {
  await using stack = new AsyncDisposableStack();
  const accountSid = `AC${'0'.repeat(31)}1`;
  const twilio = stack.use(await startTwilio({ accountSid, authToken: 'right', retryDelaysMs: [] }));
  const settings = { baseUrl: twilio.url, accountSid, authToken: 'right', sender: '+27600000001', ratePerSecond: RATE };
  const providers = { sms: { providers: [{ name: 'twilio', kind: 'twilio', ...settings }] } };
  const databaseUrl = stack.use(await createDatabase()).url;
  const service = stack.use(await startCommunication({ databaseUrl, settings: await writeProviders(providers) }));
  const log = createLogger('test', 'silent');
  const pool = createPool({ url: databaseUrl, schema: 'communication', maxConnections: 1, log });
  stack.defer(() => pool.end());
  const ana = await service.callerOf('ana');
  const body = { to: '+27821234567', message: 'Your code is 1234' };
  const startedAt = Date.now();
  const accepted = await Promise.all(Array.from({ length: MESSAGES }, () => ana('POST', '/sms', { body })));
  expect(accepted.every(({ status }) => status === 202)).toBe(true);
  const sent = async () => (await ana('GET', '/messages?status=sent&limit=1')).body?.['total'];
  const startedMs = performance.now();
  await expect.poll(sent, { timeout: 55_000, interval: 500 }).toBe(MESSAGES);
  // The turns of nine seconds are all used, as far as messages are there.
  expect(performance.now() - startedMs).toBeLessThan(45_000);
  // Each has a turn of its own, before which it is not made, however late others are.
  const times = twilio.requests().map(({ at }) => Number(at) - startedAt);
  const early = times.filter((at, turn) => at < (turn * 1000) / RATE - CLOCKS_DIFFER_MS);
  expect(early).toEqual([]);
  await expect
    .poll(async () => {
      const { rows } = await pool.query<{ updates: number }>(
        "SELECT n_tup_upd::int AS updates FROM pg_stat_user_tables WHERE relname = 'messages'",
      );
      return rows[0]?.updates ?? 0;
    })
    .toBeGreaterThan(2 * MESSAGES);
  const { rows } = await pool.query<{ updates: number }>(
    "SELECT n_tup_upd::int AS updates FROM pg_stat_user_tables WHERE relname = 'messages'",
  );
  // Taken, put off, taken, begun and ended: who asked for every turn would have written hundreds of times.
  expect(rows[0]?.updates).toBeLessThan(8 * MESSAGES);
});
