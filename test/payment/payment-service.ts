import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { startPayfast } from '@rollcall/simulators/payfast.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startStripe } from '@rollcall/simulators/stripe.ts';
import { startYoco } from '@rollcall/simulators/yoco.ts';
import type { Client } from 'pg';
import { insist } from '../support/insist.ts';
import { createDatabase } from '../support/postgres.ts';
import type { Answer, Replica, RunningService } from '../support/replica.ts';
import { type BillingService, type Caller, idOf, sellers, startBilling } from './billing-service.ts';
import { type Front, startFront } from './front.ts';

export const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX';
const QUICK = [50, 200, 1000, 3000];
const PAYMENT_SCOPES = 'payments:write payments:read refunds:write';

/** Payment with simulated providers, behind the open ways of a gateway. */
export interface PaymentService extends AsyncDisposable {
  readonly billing: BillingService;
  readonly service: RunningService;
  readonly front: Front;
  readonly databaseUrl: string;
  readonly payfast: Simulator;
  readonly yoco: Simulator;
  readonly stripe: Simulator;
  callerOf(subject: string, scope?: string, url?: string): Promise<Caller>;
  startProcess(): Promise<Replica>;
}

/**
 * @param settings besides what leads to the simulators.
 * @param files see {@link startBilling}.
 * @param own for what is killed: its own database, and when providers repeat notifications.
 */
export async function startPayment(
  settings: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, unknown>> = {},
  own: { readonly databaseUrl?: string; readonly retryDelaysMs?: readonly number[] } = {},
): Promise<PaymentService> {
  await using stack = new AsyncDisposableStack();
  const { retryDelaysMs = QUICK } = own;
  const databaseUrl = own.databaseUrl ?? stack.use(await createDatabase()).url;
  const front = stack.use(await startFront());
  const webhook = (name: string) => ({ url: `${front.url}/api/v1/payment/notifications/${name}`, secret: SECRET });
  const payfast = stack.use(await startPayfast({ mode: 'live', retryDelaysMs }));
  const yoco = stack.use(await startYoco({ webhook: webhook('yoco'), secretKey: 'sk_live_1', retryDelaysMs }));
  const stripe = stack.use(await startStripe({ webhook: webhook('stripe'), secretKey: 'sk_test_1', retryDelaysMs }));
  const billing = stack.use(
    await startBilling({
      databaseUrl,
      files: {
        ...files,
        ...sellers,
        ROLLCALL_PROVIDERS_FILE: {
          default: 'sandbox',
          providers: {
            payfast: {
              merchantId: '10000100',
              merchantKey: '46f0cd694581a',
              passphrase: 'jt7NOE43FZPn',
              siteUrl: payfast.url,
              apiUrl: payfast.url,
              sources: ['127.0.0.1'],
            },
            yoco: { secretKey: 'sk_live_1', webhookSecrets: [SECRET], apiUrl: `${yoco.url}/api` },
            stripe: { secretKey: 'sk_test_1', webhookSecrets: [SECRET], apiUrl: stripe.url },
            sandbox: { secret: SECRET },
          },
        },
      },
      settings: {
        ROLLCALL_MODE: 'trial',
        ROLLCALL_PROVIDER_ADDRESSES: 'any',
        ROLLCALL_PUBLIC_URL: front.url,
        ...settings,
      },
    }),
  );
  front.leadTo(billing.service.url);
  const kept = stack.move();
  return {
    billing,
    service: billing.service,
    front,
    databaseUrl,
    payfast,
    yoco,
    stripe,
    callerOf: (subject, scope = PAYMENT_SCOPES, url) => billing.callerOf(subject, scope, url),
    startProcess: () => billing.startProcess(),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** A payment of R149.50. */
export const tea = {
  amount: 14_950,
  currency: 'ZAR',
  customerEmail: 'thandi@example.co.za',
  itemName: 'Tea <for> "two"',
} as const;

/** Makes a payment that its payer can pay. */
export async function madePayment(caller: Caller, changes: Readonly<Record<string, unknown>> = {}): Promise<Made> {
  const key = randomUUID();
  // Where the machine is busy, connections to the database may be.
  const answer = await insist(() => caller.post('/payments', { ...tea, ...changes }, key));
  const url = answer.body?.['paymentUrl'];
  if (answer.status !== 201 || typeof url !== 'string') throw new Error(`It was not made: ${JSON.stringify(answer)}`);
  return { id: idOf(answer), url };
}

interface Made {
  readonly id: string;
  readonly url: string;
}

type Choice = 'pay' | 'decline' | 'cancel';

/** The payer goes to the page of the payment and chooses, whichever provider has it. */
export async function choose({ url }: Made, choice: Choice): Promise<Response> {
  if (new URL(url).pathname.split('/')[1] !== 'pay') return decideAt(url, choice);
  const shown = await fetch(url);
  const page = await shown.text();
  if (!shown.ok) throw new Error(`The page is not there: ${page}`);
  if (!page.includes('name="signature"')) return post(url, [['decision', choice]]);
  const fields = [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)];
  const [, action = ''] = /action="([^"]*)"/.exec(page) ?? [];
  const pairs = fields.map(([, name = '', value = '']) => [text(name), text(value)] as const);
  return choosePayFast({ url: text(action), fields: pairs }, choice);
}

interface Form {
  readonly url: string;
  readonly fields: readonly (readonly [string, string])[];
}

/** The payer's browser posts the form of PayFast, and the payer chooses. */
export async function choosePayFast({ url, fields }: Form, choice: Choice): Promise<Response> {
  const posted = await post(url, fields);
  const next = posted.headers.get('location');
  if (next === null) throw new Error(`PayFast refuses the form: ${await posted.text()}`);
  return decideAt(new URL(next, url).href, choice);
}

/** On the page of a simulator; at Stripe the card decides. */
function decideAt(url: string, choice: Choice): Promise<Response> {
  const isStripe = url.includes('cs_test');
  return post(url, [
    ['outcome', isStripe && choice === 'decline' ? 'pay' : choice],
    ['card', choice === 'decline' ? '4000000000000002' : '4242424242424242'],
  ]);
}

function post(url: string, fields: readonly (readonly [string, string])[]): Promise<Response> {
  const body = new URLSearchParams(fields.map(([name, value]) => [name, value]));
  return fetch(url, { method: 'POST', body, redirect: 'manual' });
}

/** What HTML says. */
function text(escaped: string): string {
  return escaped.replace(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(Number(code)));
}

/** What was being worked on when its replica died is due again after half a minute. */
const LONGEST_SECONDS = 40;

/** Amounts of the refunds that Stripe has made, by the payment. */
export async function refundsAtStripe({ stripe }: PaymentService): Promise<ReadonlyMap<string, readonly number[]>> {
  const objects = (await (await fetch(`${stripe.url}/_control/state`)).json()) as readonly StripeObject[];
  const made = new Map<string, readonly number[]>();
  for (const { object, amount = 0, metadata } of objects) {
    const id = metadata?.paymentId ?? '';
    if (object === 'refund') made.set(id, [...(made.get(id) ?? []), amount]);
  }
  return made;
}

interface StripeObject {
  readonly object: string;
  readonly amount?: number;
  readonly metadata?: { readonly paymentId?: string };
}

/** Lets two minutes pass for what is not known of the refunds of a payment. */
export async function letRefundsWait(database: Client, paymentId: string, time = '2 minutes'): Promise<void> {
  await database.query(
    `UPDATE refunds SET called_at = called_at - $2::interval, last_look_up_at = last_look_up_at - $2::interval,
       due_at = now() WHERE payment_id = $1 AND state IN ('pending', 'processing')`,
    [paymentId, time],
  );
}

/** Reads a payment until it is as it should be. */
export async function untilPayment(caller: Caller, id: string, status: string): Promise<Answer> {
  for (let left = LONGEST_SECONDS * 20; ; left -= 1) {
    const answer = await caller.get(`/payments/${id}`);
    if (answer.body?.['status'] === status) return answer;
    if (left === 0) throw new Error(`It is not ${status}: ${JSON.stringify(answer.body)}`);
    await delay(50);
  }
}
