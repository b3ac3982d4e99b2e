import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { json, text } from 'node:stream/consumers';
import type { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type BillingService, type Caller, connectTo, decide, idOf, sandbox, startBilling } from './billing-service.ts';

interface Mail {
  readonly key: string | undefined;
  readonly token: string | undefined;
  readonly body: {
    readonly to: string;
    readonly template: string;
    readonly locale: string;
    readonly variables: Readonly<Record<string, string>>;
  };
}

const stack = new AsyncDisposableStack();
let mails: Mail[] = [];
/** What the gateway does with the next mails in place of taking them; `lost` takes it without an answer. */
let faults: (number | 'cut' | 'lost')[] = [];
let tokens = 0;
let billing: BillingService;
let shop: Caller;
let database: Client;

/** As much of a gateway as payment sees of it: its token endpoint, and the way to communication. */
const gateway: RequestListener = (request, response) => void respond(request, response);

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const status = await answerTo(request);
  if (status === undefined) request.socket.destroy();
  else response.writeHead(status).end(JSON.stringify({ access_token: `token-${tokens}`, expires_in: 300 }));
}

async function answerTo(request: IncomingMessage): Promise<number | undefined> {
  const { url, headers } = request;
  if (url === '/api/v1/auth/token') {
    const basic = Buffer.from(String(headers.authorization).slice('Basic '.length), 'base64').toString();
    const form = new URLSearchParams(await text(request));
    if (basic !== 'billing:s3cret%2B%25' || form.get('scope') !== 'messages:send') return 401;
    tokens += 1;
    return 200;
  }
  if (url !== '/api/v1/communication/emails') return 404;
  const body = (await json(request)) as Mail['body'];
  const fault = faults.shift();
  if (fault === 'cut') return undefined;
  if (typeof fault === 'number') return fault;
  mails.push({ key: headers['idempotency-key']?.toString(), token: headers.authorization, body });
  return fault === 'lost' ? undefined : 202;
}

beforeAll(async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  const files = { ...sandbox.files, ROLLCALL_CLIENT_SECRET_FILE: 's3cret+%\n' };
  const settings = { ...sandbox.settings, ROLLCALL_CLIENT_ID: 'billing' };
  billing = stack.use(await startBilling({ databaseUrl, files, settings, gateway }));
  database = stack.use(await connectTo(databaseUrl));
  shop = await billing.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

beforeEach(() => {
  mails = [];
  faults = [];
});

async function issue(): Promise<string> {
  const customer = { email: 'ann@example.com', name: 'Ann', locale: 'af-ZA' };
  const customerId = idOf(await shop.post('/customers', customer));
  const items = [{ description: 'x'.repeat(300), amount: 14_950, quantity: 1, taxRate: 15 }];
  return idOf(await shop.post('/invoices', { customerId, items, finalize: true }));
}

/** Nobody waits for the next attempt. */
const hurry = () => database.query('UPDATE billing_mails SET due_at = now() WHERE due_at IS NOT NULL');

async function stateOf(id: string): Promise<string | undefined> {
  const { rows } = await database.query<{ state: string }>('SELECT state FROM billing_mails WHERE invoice_id = $1', [
    id,
  ]);
  return rows[0]?.state;
}

test('an invoice goes out with its link; whoever opens that pays by a button, and gets a receipt', async () => {
  const id = await issue();
  await expect.poll(() => mails.length).toBe(1);
  const [mail] = mails;
  expect(mail?.body).toMatchObject({
    to: 'ann@example.com',
    template: 'invoice',
    locale: 'af-ZA',
    variables: { company: 'Kettle (Pty) Ltd', name: 'Ann', total: 'ZAR 171.93', tax: 'ZAR 22.43' },
  });
  const { pathname } = new URL(String(mail?.body.variables['url']));
  const page = `${billing.service.url}${pathname}`;
  for (let opened = 0; opened < 3; opened += 1) {
    const response = await fetch(page);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-security-policy')).toContain("form-action 'self';");
    expect(await response.text()).toContain('ZAR 171.93');
  }
  expect((await shop.get(`/invoices/${id}`)).body).toMatchObject({ status: 'open', paymentId: null });
  expect((await fetch(page.slice(0, -1))).status).toBe(404);
  const last = page.endsWith('A') ? 'E' : 'A';
  expect((await fetch(`${page.slice(0, -1)}${last}`)).status).toBe(404);
  const paying = await fetch(page, { method: 'POST' });
  expect(paying.status).toBe(200);
  const paymentUrl = /<a class="button" href="([^"]*)"/.exec(await paying.text())?.[1];
  expect(await (await fetch(page, { method: 'POST' })).text()).toContain(`content="0; url=${paymentUrl}"`);
  await decide(billing, paymentUrl, 'pay');
  await expect.poll(() => mails.map(({ body }) => body.template)).toEqual(['invoice', 'receipt']);
  expect(await (await fetch(page)).text()).toContain('is paid');
  expect((await fetch(page, { method: 'POST' })).status).toBe(409);
});

test('a mail is handed over until it is taken, with one key', async () => {
  faults = [503, 429, 'cut', 401, 'lost'];
  await issue();
  await expect
    .poll(
      async () => {
        await hurry();
        return mails.length;
      },
      { timeout: 20_000 },
    )
    .toBe(2);
  expect(new Set(mails.map(({ key }) => key)).size).toBe(1);
  // After 401 with a new one.
  expect(mails[0]?.token).not.toBe('Bearer token-1');
  const ofMail = 'SELECT state, due_at FROM billing_mails WHERE id = $1';
  await expect
    .poll(async () => (await database.query(ofMail, [mails[0]?.key])).rows)
    .toEqual([{ state: 'sent', due_at: null }]);
});

test('what communication refuses is not tried again, and an invoice that is taken back is not mailed', async () => {
  faults = [422];
  const refused = await issue();
  await expect.poll(() => stateOf(refused)).toBe('failed');
  faults = [503];
  const voided = await issue();
  await expect.poll(() => faults.length).toBe(0);
  await shop.post(`/invoices/${voided}/void`);
  await expect
    .poll(async () => {
      await hurry();
      return stateOf(voided);
    })
    .toBe('sent');
  expect(mails).toEqual([]);
});

test('the queue has neither addresses nor texts', async () => {
  await issue();
  const { rows } = await database.query<{ text: string }>('SELECT billing_mails::text AS text FROM billing_mails');
  for (const { text: row } of rows) expect(row).not.toMatch(/ann@|kettle|xxx|171\.93/i);
});
