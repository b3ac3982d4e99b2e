import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startBulkSms } from '@rollcall/simulators/sms/bulksms.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { createDatabase } from '../support/postgres.ts';
import type { Answer } from '../support/replica.ts';
import { type Caller, startCommunication } from './communication-service.ts';
import { type Forwarder, startForwarder } from './forwarder.ts';
import { writeProviders } from './providers-file.ts';

export const TWILIO_TOKEN = 'twilio-token';
const NOTIFICATION_TOKEN = 'notification-token-of-bulksms';

/** Communication, with two simulators of SMS whose notifications come back to it. */
export interface SmsFixture extends AsyncDisposable {
  /** Is told of by neither whom it knows: it has no idempotency key. */
  readonly twilio: Simulator;
  /** Knows a repetition, and names messages by its own id alone. */
  readonly bulksms: Simulator;
  readonly gateway: Forwarder;
  readonly ana: Caller;
  /** Sends by the provider that the number's country has. @returns what is answered. */
  send(
    provider: 'twilio' | 'bulksms' | 'both',
    body?: object,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>;
  /** Of its database. */
  readonly pool: Pool;
  message(sent: Answer): Promise<Record<string, unknown>>;
  /** As Prometheus gets them. */
  metrics(): Promise<string>;
  /** How many reports are kept. */
  reports(): Promise<number>;
}

/** Numbers of countries, each of which has an order of its own. */
export const NUMBERS = { twilio: '+447400123456', bulksms: '+27821234567', both: '+4915123456789' };

export async function startSmsFixture(): Promise<SmsFixture> {
  await using stack = new AsyncDisposableStack();
  const gateway = stack.use(await startForwarder());
  const notifications = `${gateway.url}/api/v1/communication/notifications`;
  const accountSid = `AC${'0'.repeat(31)}1`;
  const twilio = stack.use(
    await startTwilio({
      accountSid,
      authToken: TWILIO_TOKEN,
      retryDelaysMs: [],
      webhookUrl: `${notifications}/twilio`,
    }),
  );
  const bulksms = stack.use(
    await startBulkSms({
      tokenId: 'id',
      tokenSecret: 'secret',
      webhookUrl: `${notifications}/bulksms?token=${NOTIFICATION_TOKEN}`,
      retryDelaysMs: [200, 200],
    }),
  );
  const common = { timeoutSeconds: 2 };
  const providers = {
    sms: {
      byCountry: { GB: ['twilio'], ZA: ['bulksms'], DE: ['bulksms', 'twilio'] },
      providers: [
        {
          ...common,
          name: 'twilio',
          kind: 'twilio',
          baseUrl: twilio.url,
          accountSid,
          authToken: TWILIO_TOKEN,
          sender: '+27600000001',
        },
        {
          ...common,
          name: 'bulksms',
          kind: 'bulksms',
          baseUrl: bulksms.url,
          user: 'id',
          password: 'secret',
          notificationToken: NOTIFICATION_TOKEN,
        },
      ],
    },
  };
  const databaseUrl = stack.use(await createDatabase()).url;
  const communication = stack.use(
    await startCommunication({
      databaseUrl,
      settings: {
        ...(await writeProviders(providers)),
        ROLLCALL_PUBLIC_URL: gateway.url,
        ROLLCALL_RETRY_BASE_SECONDS: '0.1',
      },
    }),
  );
  gateway.leadTo(communication.service.url);
  const pool = createPool({
    url: databaseUrl,
    schema: 'communication',
    maxConnections: 1,
    log: createLogger('test', 'silent'),
  });
  stack.defer(() => pool.end());
  const ana = await communication.callerOf('ana');
  const kept = stack.move();
  return {
    twilio,
    bulksms,
    gateway,
    ana,
    pool,
    send: (provider, body = {}, headers = {}) =>
      ana('POST', '/sms', { body: { to: NUMBERS[provider], message: 'Your code is 1234', ...body }, headers }),
    async message(sent) {
      const { body } = await ana('GET', `/messages/${String(sent.body?.['id'])}`);
      return body ?? {};
    },
    metrics: async () => (await fetch(`${communication.service.adminUrl}/metrics`)).text(),
    async reports() {
      const { rows } = await pool.query<{ count: number }>('SELECT count(*)::int AS count FROM reports');
      return rows[0]?.count ?? -1;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
