import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres } from '@rollcall/local/postgres.ts';
import { startRedis } from '@rollcall/local/redis.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startBulkSms } from '@rollcall/simulators/sms/bulksms.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { Client } from 'pg';
import { expect, inject, vi } from 'vitest';
import { insist } from '../support/insist.ts';
import { killInRounds, type Load, startLoad, victimOf } from '../support/kills.ts';
import { createMailpit, type TestMailpit } from '../support/mailpit.ts';
import { startAgain } from '../support/postgres.ts';
import { type Supervised, supervise } from '../support/supervised.ts';
import { type CommunicationService, startCommunication } from './communication-service.ts';
import { type Forwarder, startForwarder } from './forwarder.ts';
import { writeProviders } from './providers-file.ts';

const ACCOUNT = `AC${'0'.repeat(31)}1`;
/** A provider that is told 502 says it again, for a minute and more. */
const retryDelaysMs = Array.from({ length: 200 }, () => 500);
const LANES = 12;
const PAUSE_MS = 100;
/** From what a provider does to its answer: who is killed in between never knows. */
const ANSWERS_AFTER_MS = 300;
/** Less than a subject may send in a minute. */
const OF_ONE_SUBJECT = 40;
/** Calls of a channel at a time, of one replica: so many may be under way when it is killed. */
const AT_ONCE = 20;
const CHANNELS = 2;

/** The providers, each of which lists what it got. */
interface Counterparts {
  readonly gateway: Forwarder;
  /** Has no way to say what became of a mail. */
  readonly mailpit: TestMailpit;
  /** Knows no repetition, and tells of what it took. */
  readonly twilio: Simulator;
  /** Knows a repetition. */
  readonly bulksms: Simulator;
}

/** What was accepted, by its id. The text is of this message alone. */
type Accepted = Map<string, { readonly provider: ProviderName; readonly text: string }>;

const recipients = { mailpit: 'ana@example.com', twilio: '+447400123456', bulksms: '+27821234567' } as const;
type ProviderName = keyof typeof recipients;
const names: readonly ProviderName[] = ['mailpit', 'twilio', 'bulksms'];

/**
 * Kills replicas, PostgreSQL and Redis under a load of messages. What was accepted has left once
 * then, or is unknown where nobody can tell.
 *
 * @param rounds how often something is killed.
 * @returns what is wrong.
 */
export async function killMessaging(rounds: number): Promise<readonly unknown[]> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'message-kills-'));
  const postgres = stack.use(await startPostgres({ directory: join(directory, 'postgres') }));
  const redis = stack.use(await startRedis({ directory: join(directory, 'redis'), binary: inject('redisBinary') }));
  const counterparts = await startCounterparts(stack);
  for (const provider of [counterparts.twilio, counterparts.bulksms]) {
    provider.addFaults({ kind: 'slow', delayMs: ANSWERS_AFTER_MS });
  }
  const databaseUrl = await postgres.createDatabase('communication');
  const settings = {
    ...(await providersAt(counterparts)),
    ROLLCALL_PUBLIC_URL: counterparts.gateway.url,
    ROLLCALL_RETRY_BASE_SECONDS: '0.2',
    ROLLCALL_REDIS_URL: redis.url,
  };
  const service = stack.use(await startCommunication({ databaseUrl, settings }));
  const replicas = await startReplicas(service, stack);
  counterparts.gateway.leadTo(...replicas.map(({ current }) => current.url));
  // One that cannot be killed would end what others leave.
  await service.service[Symbol.asyncDispose]();

  const accepted: Accepted = new Map();
  const load = sendSteadily(service, { replicas, accepted });
  const victims = [
    ...replicas.map(victimOf),
    { kill: () => postgres.kill(), start: () => startAgain(postgres) },
    { kill: () => redis.kill(), start: () => redis.start() },
  ];
  await killInRounds({ victims, rounds, progress: load.done });
  await load.stop();
  await untilNothingIsDue(databaseUrl);
  return await faultsOf({ databaseUrl, accepted, counterparts, most: AT_ONCE * CHANNELS * killsOf(replicas) });
}

const killsOf = (replicas: readonly Supervised[]) => replicas.reduce((sum, { restarts }) => sum + restarts, 0);

async function startCounterparts(stack: AsyncDisposableStack): Promise<Counterparts> {
  const gateway = stack.use(await startForwarder());
  const notifications = `${gateway.url}/api/v1/communication/notifications`;
  const twilio = { accountSid: ACCOUNT, authToken: 'secret', webhookUrl: `${notifications}/twilio`, retryDelaysMs };
  const webhookUrl = `${notifications}/bulksms?token=token-of-notifications`;
  return {
    gateway,
    mailpit: stack.use(await createMailpit()),
    twilio: stack.use(await startTwilio(twilio)),
    bulksms: stack.use(await startBulkSms({ tokenId: 'id', tokenSecret: 'secret', webhookUrl, retryDelaysMs })),
  };
}

function providersAt({ mailpit, twilio, bulksms }: Counterparts) {
  // A busy machine is no fault of a provider.
  const common = { timeoutSeconds: 10 };
  const smtp = { ...common, name: 'mailpit', kind: 'smtp', host: '127.0.0.1', port: mailpit.smtpPort, tls: 'none' };
  return writeProviders({
    email: { from: { address: 'shop@shop.example' }, providers: [{ ...smtp, bounceDomain: 'shop.example' }] },
    sms: {
      byCountry: { GB: ['twilio'], ZA: ['bulksms'] },
      providers: [
        {
          ...common,
          name: 'twilio',
          kind: 'twilio',
          baseUrl: twilio.url,
          accountSid: ACCOUNT,
          authToken: 'secret',
          sender: '+27600000001',
        },
        {
          ...common,
          name: 'bulksms',
          kind: 'bulksms',
          baseUrl: bulksms.url,
          user: 'id',
          password: 'secret',
          notificationToken: 'token-of-notifications',
        },
      ],
    },
  });
}

function startReplicas({ settings }: CommunicationService, stack: AsyncDisposableStack) {
  const place = { logDirectory: inject('temporaryDirectory'), access: {}, namespace: 'none', settings };
  const start = async () => stack.use(await supervise('services/communication/src/main.ts', place));
  return Promise.all([start(), start()]);
}

interface Sending {
  readonly replicas: readonly Supervised[];
  readonly accepted: Accepted;
}

/** Each call has a key, and is made until it is answered, by whichever replica answers. */
function sendSteadily(service: CommunicationService, { replicas, accepted }: Sending): Load {
  return startLoad(LANES, async (lane, turn) => {
    const subject = `lane-${lane}-${Math.trunc(turn / OF_ONE_SUBJECT)}`;
    const callers = await Promise.all(
      replicas.map(({ current: { url } }) => service.callerOf(subject, undefined, url)),
    );
    const provider = names[(lane + turn) % names.length] ?? 'mailpit';
    const to = recipients[provider];
    const text = `kills ${lane} ${turn}`;
    const path = provider === 'mailpit' ? '/emails' : '/sms';
    const body = provider === 'mailpit' ? { to, subject: text, text } : { to, message: text };
    let tries = turn;
    const { status, body: message } = await insist(async () => {
      const call = callers[tries++ % callers.length];
      if (call === undefined) throw new Error('there is no replica');
      return call('POST', path, { body, headers: { 'idempotency-key': text } });
    });
    expect([status, message]).toEqual([202, expect.anything()]);
    accepted.set(String(message?.['id']), { provider, text });
    await sleep(PAUSE_MS);
  });
}

async function rowsOf<Row extends object>(databaseUrl: string, query: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: databaseUrl, options: '-c search_path=communication' });
  await client.connect();
  try {
    return (await client.query<Row>(query)).rows;
  } finally {
    await client.end();
  }
}

/** Leases of replicas that were killed end, and what they had under way is settled. */
async function untilNothingIsDue(databaseUrl: string): Promise<void> {
  const due = () =>
    rowsOf(
      databaseUrl,
      `SELECT 'message' AS what, state, provider FROM messages WHERE due_at IS NOT NULL
       UNION ALL SELECT 'report', receipt, provider FROM reports WHERE due_at IS NOT NULL LIMIT 5`,
    );
  await vi.waitFor(async () => expect(await due()).toEqual([]), { timeout: 180_000, interval: 1000 });
}

interface Ended {
  readonly databaseUrl: string;
  readonly accepted: Accepted;
  readonly counterparts: Counterparts;
  /** Of which nobody may know what became. */
  readonly most: number;
}

/** What may have become of a message, and how often its provider has it then. */
const ends: Readonly<Record<ProviderName, Readonly<Record<string, readonly number[]>>>> = {
  mailpit: { sent: [1], unknown: [0, 1] },
  // Whatever it took it has told of.
  twilio: { delivered: [1], unknown: [0] },
  bulksms: { delivered: [1] },
};

async function faultsOf({ databaseUrl, accepted, counterparts, most }: Ended): Promise<readonly unknown[]> {
  const { twilio, bulksms } = counterparts;
  await Promise.all([twilio.idle(), bulksms.idle()]);
  await untilNothingIsDue(databaseUrl);
  const rows = await rowsOf<{ id: string; state: string }>(databaseUrl, 'SELECT id, state FROM messages');
  const states = new Map(rows.map(({ id, state }) => [id, state]));
  const arrived = await arrivals(counterparts);
  const outcomes = [...accepted].map(([id, { provider, text }]) => {
    const times = arrived[provider].get(provider === 'mailpit' ? id : text) ?? 0;
    return { id, provider, state: states.get(id) ?? 'lost', times };
  });
  const unknown = outcomes.filter(({ state }) => state === 'unknown').map(({ provider }) => provider);
  console.error(
    `${rows.length} messages, of which nobody knows: ${JSON.stringify(Object.fromEntries(countsOf(unknown)))}`,
  );
  return [
    ...outcomes.filter(({ provider, state, times }) => ends[provider][state]?.includes(times) !== true),
    ...[...states.keys()].filter((id) => !accepted.has(id)).map((id) => `${id} was accepted twice`),
    ...(unknown.length > most ? [`${unknown.length} are unknown`] : []),
  ];
}

/** By provider, how often it got each message. */
async function arrivals({ mailpit, twilio, bulksms }: Counterparts) {
  const mails = (await mailpit.messages()).map(({ MessageID }) => MessageID.split('@')[0] ?? '');
  const [sent, submitted] = await Promise.all([twilio, bulksms].map(bodiesAt));
  return { mailpit: countsOf(mails), twilio: countsOf(sent ?? []), bulksms: countsOf(submitted ?? []) };
}

async function bodiesAt(simulator: Simulator): Promise<readonly string[]> {
  const state = await fetch(`${simulator.url}/_control/state`);
  const { messages } = (await state.json()) as { messages: readonly { body: string }[] };
  return messages.map(({ body }) => body);
}

function countsOf(items: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return counts;
}
