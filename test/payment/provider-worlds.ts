import type { Checkout, PaymentProvider, RawNotification } from '@rollcall/payment/domain/ports.ts';
import type { Calls } from '@rollcall/payment/providers/call.ts';
import { createPayFast } from '@rollcall/payment/providers/payfast/payfast.ts';
import { createSandbox, type SandboxDecision, sandboxNotification } from '@rollcall/payment/providers/sandbox.ts';
import { createStripe } from '@rollcall/payment/providers/stripe/stripe.ts';
import { somePayFastSettings } from '@rollcall/payment/providers/testing/payfast-settings.ts';
import { createYoco } from '@rollcall/payment/providers/yoco/yoco.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { startPayfast } from '@rollcall/simulators/payfast.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startStripe } from '@rollcall/simulators/stripe.ts';
import { type Receiver, startReceiver } from '@rollcall/simulators/testing/receiver.ts';
import { startYoco } from '@rollcall/simulators/yoco.ts';
import { request } from 'undici';

/** A provider with the other side of it. */
export interface World extends AsyncDisposable {
  readonly provider: PaymentProvider;
  /** Undefined for the sandbox, which has no other side. */
  readonly simulator: Simulator | undefined;
  /** The payer goes to the page of a checkout and chooses. Notifications have come when it resolves. */
  choose(checkout: Checkout, choice: 'pay' | 'decline' | 'cancel'): Promise<void>;
  /** Everything that the provider has sent so far. */
  notifications(): readonly RawNotification[];
}

/** What one customer of a provider has there. */
interface Account {
  /** Of notifications. */
  readonly secret: string;
  readonly merchant: { readonly id: string; readonly key: string; readonly passphrase: string };
}

/** Ours, and one that somebody else has at the same providers. */
const accounts = {
  ours: {
    secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX',
    merchant: { id: '10000100', key: '46f0cd694581a', passphrase: 'jt7NOE43FZPn' },
  },
  another: {
    secret: 'whsec_FxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA',
    merchant: { id: '10000101', key: 'a185496dc0f64', passphrase: 'another' },
  },
} as const satisfies Record<string, Account>;

/** @param calls with a short timeout, which faults are waited for. */
export type StartWorld = (calls: Calls, account?: Account) => Promise<World>;

/** Of somebody else, who may name our payments. */
export const anotherAccount: Account = accounts.another;
const resolve = () => Promise.reject(new Error('names are not looked up'));
const QUICK = { retryDelaysMs: [5, 10] };

export const worlds: Readonly<Record<'payfast' | 'yoco' | 'stripe' | 'sandbox', StartWorld>> = {
  async payfast(calls, { merchant } = accounts.ours) {
    const receiver = await startReceiver();
    const simulator = await startPayfast({ mode: 'live', merchant, ...QUICK });
    const settings = {
      ...somePayFastSettings(new URL(simulator.url)),
      merchantId: merchant.id,
      merchantKey: merchant.key,
      passphrase: merchant.passphrase,
      isTest: false,
      notifyUrl: `${receiver.url}/itn`,
      sources: ['127.0.0.1'],
    };
    return worldOf(createPayFast({ ...calls, settings, resolve }), { simulator, receiver });
  },
  async yoco(calls, { secret } = accounts.ours) {
    const receiver = await startReceiver();
    const webhook = { url: `${receiver.url}/yoco`, secret };
    const simulator = await startYoco({ webhook, secretKey: 'sk_live_1', ...QUICK });
    const settings = { secretKey: 'sk_live_1', webhookSecrets: [secret], apiUrl: new URL(`${simulator.url}/api`) };
    return worldOf(createYoco({ ...calls, settings }), { simulator, receiver });
  },
  async stripe(calls, { secret } = accounts.ours) {
    const receiver = await startReceiver();
    const webhook = { url: `${receiver.url}/stripe`, secret };
    const simulator = await startStripe({ webhook, secretKey: 'sk_test_1', ...QUICK });
    const settings = { secretKey: 'sk_test_1', webhookSecrets: [secret], apiUrl: new URL(simulator.url) };
    return worldOf(createStripe({ ...calls, settings }), { simulator, receiver });
  },
  async sandbox(_calls, { secret } = accounts.ours) {
    const settings = { isProduction: false, secret };
    const taken: RawNotification[] = [];
    return {
      provider: createSandbox(settings, systemClock),
      simulator: undefined,
      async choose({ checkoutRef: paymentId }, choice) {
        const decision: SandboxDecision = choice;
        const money = { amount: 14_950n, currency: 'ZAR' };
        const decided = { paymentId, money, decision, keepsMethod: true };
        taken.push(sandboxNotification(settings, decided, systemClock.now()));
      },
      notifications: () => taken,
      [Symbol.asyncDispose]: async () => undefined,
    };
  },
};

interface OtherSide {
  readonly simulator: Simulator;
  readonly receiver: Receiver;
}

function worldOf(provider: PaymentProvider, { simulator, receiver }: OtherSide): World {
  return {
    provider,
    simulator,
    async choose(checkout, choice) {
      const page = await openPage(checkout, simulator);
      const card = choice === 'decline' ? '4000000000000002' : '4242424242424242';
      // At Stripe the card decides.
      const outcome = provider.name === 'stripe' && choice === 'decline' ? 'pay' : choice;
      await post(page, [
        ['outcome', outcome],
        ['card', card],
      ]);
      await simulator.idle();
    },
    notifications: () =>
      receiver.taken.map(({ headers, body }) => ({
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value?.toString()])),
        body: Buffer.from(body),
        remoteAddress: '127.0.0.1',
      })),
    async [Symbol.asyncDispose]() {
      await simulator.stop();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

/** As a browser would. @returns the address of the page. */
async function openPage({ redirect }: Checkout, simulator: Simulator): Promise<string> {
  if (redirect.kind === 'url') return redirect.url;
  if (redirect.kind !== 'form') throw new Error('there is no page');
  const { statusCode, headers, body } = await post(redirect.url, redirect.fields);
  if (statusCode !== 302) throw new Error(`the form was refused: ${await body.text()}`);
  return `${simulator.url}${String(headers['location'])}`;
}

function post(url: string, fields: readonly (readonly [string, string])[]) {
  const body = new URLSearchParams(fields.map(([name, value]) => [name, value])).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  return request(url, { method: 'POST', headers, body });
}
