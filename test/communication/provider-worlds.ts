import type {
  MessageProvider,
  OutgoingEmail,
  OutgoingMessage,
  OutgoingPush,
  OutgoingSms,
} from '@rollcall/communication/domain/ports.ts';
import { createBulkSms } from '@rollcall/communication/providers/bulksms.ts';
import { createClickatell } from '@rollcall/communication/providers/clickatell.ts';
import { createFcm } from '@rollcall/communication/providers/fcm.ts';
import { createProviderAgent } from '@rollcall/communication/providers/http-call.ts';
import { createSendGrid } from '@rollcall/communication/providers/sendgrid.ts';
import { createTwilio } from '@rollcall/communication/providers/twilio.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { startSendGrid } from '@rollcall/simulators/email/sendgrid.ts';
import { startFcm } from '@rollcall/simulators/push/fcm.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startBulkSms } from '@rollcall/simulators/sms/bulksms.ts';
import { startClickatell } from '@rollcall/simulators/sms/clickatell.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';

/**
 * What a message meets. All but `error` and `busy`, which are the provider's own words, happen to the
 * answer of a message that was taken.
 */
export const faults = ['accept-and-hang', 'error', 'busy', 'garbage', 'broken-ids', 'half', 'reset', 'slow'] as const;
export type Fault = (typeof faults)[number];

/** How long a `slow` answer takes. */
export const SLOW_MS = 300;
/** What `busy` asks to wait, where the protocol can. */
export const BUSY_SECONDS = 7;

/** A provider with the other side of it. */
export interface World extends AsyncDisposable {
  readonly provider: MessageProvider;
  readonly message: OutgoingMessage;
  /** How many messages the other side took. */
  taken(): number;
  /** Says what the next message meets. */
  meet(fault: Fault): void;
  /** From now on nobody listens there. */
  stop(): Promise<void>;
}

interface WorldOptions {
  readonly timeoutMs: number;
  /** Whether our secret is not that of the account. */
  readonly isSecretWrong?: boolean;
}

export type StartWorld = (options: WorldOptions) => Promise<World>;

export const sms: OutgoingSms = {
  channel: 'sms',
  id: '0191f0a0-0000-7000-8000-000000000001',
  deduplicationId: 71,
  to: '+27821234567',
  text: 'Your code is 1234 {€}',
};
export const email: OutgoingEmail = {
  channel: 'email',
  id: sms.id,
  deduplicationId: 71,
  from: { name: 'Acacia', address: 'shop@shop.example' },
  to: { name: 'Ana', address: 'ana@example.com' },
  cc: [],
  bcc: [{ address: 'books@shop.example' }],
  subject: 'Grüße',
  text: 'Good day',
  html: '<p>Good day</p>',
  attachments: [{ filename: 'a.txt', contentType: 'text/plain', content: Buffer.from('a') }],
  unsubscribeUrl: 'https://shop.example/u/1',
};

/** A push message to a device. */
export function pushTo(target: OutgoingPush['target']): OutgoingPush {
  return { channel: 'push', id: sms.id, deduplicationId: 71, target, title: 'Hello', data: { parcel: '7' } };
}

/** A world gives a provider the messages of its own channel alone. */
export function ofChannel<Message extends OutgoingMessage>(provider: MessageProvider<Message>) {
  return provider as unknown as MessageProvider;
}

const deps = { dispatcher: createProviderAgent(), clock: systemClock };
const ACCOUNT = `AC${'0'.repeat(31)}1`;
/** Of an app of Android. */
const DEVICE = `${'d'.repeat(22)}:APA91b${'e'.repeat(134)}`;
const NONE = { retryDelaysMs: [] };

function secretOf({ isSecretWrong = false }: WorldOptions): string {
  return isSecretWrong ? 'wrong' : 'right';
}

/** Providers that are called by HTTP, against the simulators, which have no code in common with the adapters. */
export const httpWorlds: Readonly<Record<'twilio' | 'bulksms' | 'clickatell' | 'sendgrid' | 'fcm', StartWorld>> = {
  async twilio(options) {
    const simulator = await startTwilio({ accountSid: ACCOUNT, authToken: 'right', ...NONE });
    const settings = { ...commonOf(simulator, options), accountSid: ACCOUNT, sender: '+27600000001' };
    const provider = createTwilio({ ...settings, authToken: secretOf(options) }, deps);
    return worldOf(simulator, ofChannel(provider), sms);
  },
  async bulksms(options) {
    const simulator = await startBulkSms({ tokenId: 'id', tokenSecret: 'right', ...NONE });
    const settings = { ...commonOf(simulator, options), user: 'id', notificationToken: 't' };
    return worldOf(simulator, ofChannel(createBulkSms({ ...settings, password: secretOf(options) }, deps)), sms);
  },
  async clickatell(options) {
    const simulator = await startClickatell({ apiKey: 'right', ...NONE });
    const settings = { ...commonOf(simulator, options), notificationToken: 't' };
    return worldOf(simulator, ofChannel(createClickatell({ ...settings, apiKey: secretOf(options) }, deps)), sms);
  },
  async sendgrid(options) {
    const simulator = await startSendGrid({ apiKey: 'right', ...NONE });
    const provider = createSendGrid({ ...commonOf(simulator, options), apiKey: secretOf(options) }, deps);
    return worldOf(simulator, ofChannel(provider), email);
  },
  async fcm(options) {
    const [simulator, elsewhere] = [await startFcm(), await startFcm()];
    const { project_id: projectId, client_email: clientEmail, token_uri: tokenUri } = await accountOf(simulator);
    const { private_key: privateKey } = await accountOf(options.isSecretWrong === true ? elsewhere : simulator);
    await elsewhere.stop();
    const account = { clientEmail, privateKey, tokenUri };
    const provider = createFcm({ ...commonOf(simulator, options), projectId, account }, deps);
    return worldOf(simulator, ofChannel(provider), pushTo({ platform: 'fcm', token: DEVICE }));
  },
};

function commonOf({ url }: Simulator, { timeoutMs }: WorldOptions) {
  return { baseUrl: new URL(url), timeoutMs };
}

interface ServiceAccount {
  readonly project_id: string;
  readonly client_email: string;
  readonly private_key: string;
  readonly token_uri: string;
}

async function accountOf({ url }: Simulator): Promise<ServiceAccount> {
  const answer = await fetch(`${url}/_control/credentials`);
  const { serviceAccount } = (await answer.json()) as { serviceAccount: ServiceAccount };
  return serviceAccount;
}

/** In the words of the simulators. */
const RULES = {
  'accept-and-hang': { kind: 'accept-and-hang' },
  error: { kind: 'status', status: 500 },
  busy: { kind: 'status', status: 429, retryAfter: BUSY_SECONDS },
  garbage: { kind: 'garbage' },
  'broken-ids': { kind: 'broken-ids' },
  half: { kind: 'half-body' },
  reset: { kind: 'reset' },
  slow: { kind: 'slow', delayMs: SLOW_MS },
} as const satisfies Readonly<Record<Fault, object>>;

/** Where FCM takes messages: what is asked for a token is none. */
const FCM_SEND = 'messages:send';

function worldOf(simulator: Simulator, provider: MessageProvider, message: OutgoingMessage): World {
  const match = simulator.name === 'fcm' ? { match: FCM_SEND } : {};
  return {
    provider,
    message,
    taken: () => simulator.requests().filter(({ isAccepted, target }) => isAccepted && target !== '/token').length,
    meet: (fault) => simulator.addFaults({ ...RULES[fault], ...match, times: 1 }),
    stop: () => simulator.stop(),
    async [Symbol.asyncDispose]() {
      await provider.close();
      await simulator.stop();
    },
  };
}
