import { createProviderUses } from '@rollcall/communication/store/provider-uses.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, type CommunicationService, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const SID = `AC${'0'.repeat(31)}1`;
/** Replicas have them in common. */
const keys = [{ id: 'one', key: Buffer.alloc(32, 7).toString('base64') }];
const FIRST = 5;
const SECOND = 4;

let stack: AsyncDisposableStack;
let databaseUrl: string;
let pool: Pool;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  databaseUrl = stack.use(await createDatabase()).url;
  const log = createLogger('test', 'silent');
  pool = createPool({ url: databaseUrl, schema: 'communication', maxConnections: 10, log });
  stack.defer(() => pool.end());
});

afterEach(() => stack.disposeAsync());

function twilio(name: string, { url }: Simulator, more: Record<string, unknown>) {
  return { name, kind: 'twilio', baseUrl: url, accountSid: SID, authToken: 'right', sender: '+27600000001', ...more };
}

async function startWith(providers: readonly unknown[]): Promise<CommunicationService> {
  const settings = { ...(await writeProviders({ sms: { providers } })), ROLLCALL_RETRY_BASE_SECONDS: '0.2' };
  return stack.use(await startCommunication({ databaseUrl, settings, keys }));
}

const body = { to: '+27821234567', message: 'Your code is 1234' };

async function sendMany(caller: Caller, count: number): Promise<void> {
  const answers = await Promise.all(Array.from({ length: count }, () => caller('POST', '/sms', { body })));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
}

const totalOf = async (caller: Caller, status: string) =>
  (await caller('GET', `/messages?status=${status}&limit=1`)).body?.['total'];

/** Begins to count in periods that do not end while the test runs. */
async function beginPeriods(...names: readonly string[]): Promise<void> {
  await pool.query(
    `INSERT INTO provider_uses (provider, hour, in_hour, day, in_day)
     SELECT name, now() + interval '1 year', 0, now() + interval '1 year', 0 FROM unnest($1::text[]) AS name`,
    [names],
  );
}

test('a quota is of all replicas; beyond it the next provider takes messages, and then they wait', {
  timeout: 120_000,
}, async () => {
  const [cheap, dear] = [
    stack.use(await startTwilio({ accountSid: SID, authToken: 'right', retryDelaysMs: [] })),
    stack.use(await startTwilio({ accountSid: SID, authToken: 'right', retryDelaysMs: [] })),
  ];
  const providers = [
    twilio('cheap', cheap, { quotaPerDay: FIRST, quotaPerHour: 1000 }),
    twilio('dear', dear, { quotaPerDay: SECOND, priority: 1 }),
  ];
  const [one, other] = [await startWith(providers), await startWith(providers)];
  await beginPeriods('cheap', 'dear');
  const ana = await one.callerOf('ana');
  await sendMany(ana, FIRST + SECOND + 3);
  await expect.poll(() => totalOf(ana, 'sent'), { timeout: 60_000 }).toBe(FIRST + SECOND);
  const taken = () => [cheap.requests().length, dear.requests().length];
  expect(taken()).toEqual([FIRST, SECOND]);
  await expect.poll(() => totalOf(ana, 'queued'), { timeout: 30_000 }).toBe(3);

  for (const service of [one, other]) {
    const { body: shown } = await (await service.callerOf('ana'))('GET', '/providers');
    expect(shown).toMatchObject({
      providers: [
        {
          name: 'cheap',
          status: 'used-up',
          nextTryAt: expect.any(String),
          quotas: [
            { per: 'hour', limit: 1000, used: FIRST },
            { per: 'day', limit: FIRST, used: FIRST, resetsAt: expect.any(String) },
          ],
        },
        { name: 'dear', status: 'used-up', quotas: [{ per: 'day', limit: SECOND, used: SECOND }] },
      ],
    });
  }
  const metrics = await (await fetch(`${one.service.adminUrl}/metrics`)).text();
  expect(metrics).toMatch(/rollcall_communication_quota_used\{provider="cheap",per="day"[^}]*\} 5/);
  expect(metrics).toMatch(/rollcall_communication_quota_limit\{provider="dear",per="day"[^}]*\} 4/);

  // A replica that starts counts on from there, and a new day brings new ones.
  for (const service of [one, other]) await service[Symbol.asyncDispose]();
  await pool.query("UPDATE provider_uses SET hour = now() - interval '2 days', day = now() - interval '2 days'");
  await pool.query("UPDATE messages SET due_at = now() WHERE state = 'queued'");
  const fresh = await (await startWith(providers)).callerOf('ana');
  await expect.poll(() => totalOf(fresh, 'sent'), { timeout: 60_000 }).toBe(FIRST + SECOND + 3);
  expect(taken()).toEqual([FIRST + 3, SECOND]);
  const { body: shown } = await fresh('GET', '/providers');
  expect(shown).toMatchObject({ providers: [{ status: 'available', quotas: [{ per: 'hour' }, { used: 3 }] }, {}] });
});

/** What was taken near the beginning of a day is not given back on that day. */
async function isDayUnderWay(): Promise<unknown> {
  const { rows } = await pool.query(
    "SELECT now() - date_trunc('day', now(), 'UTC') BETWEEN interval '2 minutes' AND interval '23:58' AS yes",
  );
  return rows[0]?.yes;
}

test('what a provider surely did not take is given back', { timeout: 400_000 }, async () => {
  const down = stack.use(await startTwilio({ accountSid: SID, authToken: 'right', retryDelaysMs: [] }));
  const service = await startWith([twilio('down', down, { quotaPerDay: 2 })]);
  await expect.poll(isDayUnderWay, { timeout: 300_000, interval: 1000 }).toBe(true);
  down.addFaults({ kind: 'status', status: 429, times: 5 });
  const bea = await service.callerOf('bea');
  await sendMany(bea, 2);
  await expect.poll(() => totalOf(bea, 'sent'), { timeout: 50_000 }).toBe(2);
});

test('of many at once exactly as many are counted as the quota has', async () => {
  await startWith([]);
  const uses = createProviderUses(() => pool);
  await beginPeriods('raced');
  const quota = { perHour: 30, perDay: 1000 };
  const taken = await Promise.all(Array.from({ length: 100 }, () => uses.take('raced', quota)));
  expect(taken.filter(Boolean)).toHaveLength(30);
  const used = async () => (await uses.usesOf(['raced', 'never'])).get('raced');
  expect(await used()).toMatchObject({ inHour: 30, inDay: 30 });
  expect((await uses.usesOf(['never'])).get('never')).toMatchObject({ inHour: 0, inDay: 0 });
  // What may have been taken in the period before is not given back.
  await uses.giveBack('raced', 1000);
  expect(await used()).toMatchObject({ inHour: 30, inDay: 30 });
  await pool.query("UPDATE provider_uses SET hour = now() - interval '2 hours' WHERE provider = 'raced'");
  await uses.giveBack('raced', 1000);
  const { rows } = await pool.query("SELECT in_hour, in_day FROM provider_uses WHERE provider = 'raced'");
  expect(rows).toEqual([{ in_hour: 29, in_day: 30 }]);
  expect(await used()).toMatchObject({ inHour: 0, inDay: 30 });
  expect(await uses.take('raced', quota)).toBe(true);
  expect(await used()).toMatchObject({ inHour: 1, inDay: 31 });
  expect(await uses.take('raced', { perHour: undefined, perDay: 31 })).toBe(false);
  expect(await uses.take('raced', { perHour: 1, perDay: undefined })).toBe(false);
});
