import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { PaymentProvider, StoredMethods } from '@rollcall/payment/domain/ports.ts';
import { createPayFast } from '@rollcall/payment/providers/payfast/payfast.ts';
import { createStripe } from '@rollcall/payment/providers/stripe/stripe.ts';
import { somePayFastSettings } from '@rollcall/payment/providers/testing/payfast-settings.ts';
import {
  someCharge,
  someCheckout,
  someNotification,
  someRefund,
} from '@rollcall/payment/providers/testing/requests.ts';
import { createYoco } from '@rollcall/payment/providers/yoco/yoco.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';

const agent = createGuardedAgent({ mayConnect: () => true, connectTimeoutMs: 2000, keepAlive: false });
afterAll(() => agent.destroy());

let timeoutMs: number;
/** What never comes is not waited for; all else has its time, whatever else the machine does. */
beforeEach(({ task }) => {
  timeoutMs = /never answers|is lost/.test(task.name) ? 500 : 10_000;
});
const calls = () => ({ clock: systemClock, dispatcher: agent, timeoutMs });

type Make = (url: URL) => PaymentProvider;

const payfast: Make = (url) =>
  createPayFast({ ...calls(), settings: somePayFastSettings(url), resolve: () => Promise.reject(new Error('none')) });
const yoco: Make = (url) =>
  createYoco({ ...calls(), settings: { secretKey: 'sk_test_1', webhookSecrets: [], apiUrl: url } });
const stripe: Make = (url) =>
  createStripe({ ...calls(), settings: { secretKey: 'sk_test_1', webhookSecrets: [], apiUrl: url } });

/** Each call that moves money or prepares to, of each provider that is asked for it. */
const operations: readonly (readonly [string, (url: URL) => Promise<unknown>])[] = [
  ['payfast charges', (url) => storedOf(payfast(url)).charge(someCharge())],
  ['yoco makes a checkout', (url) => yoco(url).createCheckout(someCheckout())],
  ['yoco refunds', (url) => yoco(url).refund(someRefund())],
  ['stripe makes a checkout', (url) => stripe(url).createCheckout(someCheckout())],
  ['stripe makes a checkout to keep a card', (url) => stripe(url).createCheckout(someCheckout({ purpose: 'keep' }))],
  ['stripe charges', (url) => storedOf(stripe(url)).charge(someCharge())],
  ['stripe refunds', (url) => stripe(url).refund(someRefund())],
];

const lookups: readonly (readonly [string, (url: URL) => Promise<unknown>])[] = [
  ['payfast looks a payment up', (url) => payfast(url).lookUp({ ...someCharge(), createdAt: new Date() })],
  ['payfast looks a refund up', (url) => payfast(url).lookUpRefund(someRefund())],
  ['payfast lists settlements', async (url) => payfast(url).settlement?.(new Date(0), new Date())],
  [
    'yoco looks a payment up',
    (url) => yoco(url).lookUp({ ...someCheckout(), checkoutRef: 'ch_1', createdAt: new Date() }),
  ],
  ['stripe looks a charge up', (url) => stripe(url).lookUp({ ...someCharge(), createdAt: new Date() })],
  [
    'stripe looks a session up',
    (url) => stripe(url).lookUp({ ...someCheckout(), checkoutRef: 'cs_1', createdAt: new Date() }),
  ],
  ['stripe looks a refund up', (url) => stripe(url).lookUpRefund(someRefund())],
  ['stripe lists settlements', async (url) => stripe(url).settlement?.(new Date(0), new Date())],
];

/** Faults after which nobody knows whether the provider has done it. */
const unclear: readonly (readonly [string, (socket: Socket) => void, string])[] = [
  ['never answers', () => undefined, 'no_answer'],
  ['resets the connection', (socket) => socket.resetAndDestroy(), 'no_answer'],
  ['answers with garbage', (socket) => socket.end('\u0000garbage\r\n\r\n'), 'no_answer'],
  [
    'sends half of the body',
    (socket) => socket.end(answer(200, '{"status":"succ', 'content-length: 900')),
    'no_answer',
  ],
  ['answers 500', (socket) => socket.end(answer(500, '{}')), 'server_error'],
  ['answers 503', (socket) => socket.end(answer(503, 'no')), 'server_error'],
  ['answers 409', (socket) => socket.end(answer(409, '{}')), 'conflict'],
  ['answers 408', (socket) => socket.end(answer(408, '{}')), 'no_answer'],
  ['answers {}', (socket) => socket.end(answer(200, '{}')), 'unreadable_answer'],
  ['answers a page of HTML', (socket) => socket.end(answer(200, '<html>Sorry</html>')), 'unreadable_answer'],
  ['leads elsewhere', (socket) => socket.end(answer(302, '', 'location: /login')), 'unreadable_answer'],
  ['sends too much', (socket) => socket.end(answer(200, `{"a":"${'x'.repeat(4_200_000)}"}`)), 'unreadable_answer'],
];

describe.each(operations)('%s, and the provider', (_operation, run) => {
  test.each(unclear)('%s: what became of it is unknown', async (_fault, act, reason) => {
    expect(await run(await serve(act))).toMatchObject({ outcome: 'unknown', reason });
  });

  test('is not there: nothing was done', async () => {
    expect(await run(await nobody())).toEqual({ outcome: 'failed', reason: 'unreachable' });
  });

  test.each([401, 403])('answers %i: nothing was done, and the settings are to be mended', async (status) => {
    const url = await serve((socket) => socket.end(answer(status, '{}')));
    expect(await run(url)).toEqual({ outcome: 'failed', reason: 'credentials' });
  });

  test('is asked too often: nothing was done, and it says when to come back', async () => {
    const url = await serve((socket) => socket.end(answer(429, '{}', 'retry-after: 7')));
    expect(await run(url)).toEqual({ outcome: 'failed', reason: 'rate_limited', retryAfterMs: 7000 });
  });

  test('says by a date when to come back', async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    const url = await serve((socket) => socket.end(answer(429, '{}', `retry-after: ${date}`)));
    const { retryAfterMs } = (await run(url)) as { readonly retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(50_000);
    expect(retryAfterMs).toBeLessThanOrEqual(60_000);
  });
});

describe.each(lookups)('%s, and the provider', (_lookup, run) => {
  test.each(unclear)('%s: it is to be asked again', async (_fault, act) => {
    expect(await run(await serve(act))).toMatchObject({ found: 'unknown' });
  });

  test('is not there: it is to be asked again', async () => {
    expect(await run(await nobody())).toEqual({ found: 'unknown' });
  });

  test('is asked too often: it says when to come back', async () => {
    const url = await serve((socket) => socket.end(answer(429, '{}', 'retry-after: 7')));
    expect(await run(url)).toEqual({ found: 'unknown', retryAfterMs: 7000 });
  });
});

describe('a refund at PayFast asks before it does anything', () => {
  test.each(unclear)('the provider %s: nothing was done', async (_fault, act) => {
    expect(await payfast(await serve(act)).refund(someRefund())).toMatchObject({ outcome: 'failed' });
  });

  test('the answer to the refund is lost: unknown', async () => {
    const url = await serve((socket, head) => (head.startsWith('POST') ? undefined : socket.end(refundState(14_950))));
    expect(await payfast(url).refund(someRefund())).toEqual({ outcome: 'unknown', reason: 'no_answer' });
  });

  test('the answer is lost, but less is left afterwards: it was done', async () => {
    let left = 14_950;
    const url = await serve((socket, head) => {
      if (head.startsWith('POST')) left -= 6000;
      else socket.end(refundState(left));
    });
    expect(await payfast(url).refund(someRefund())).toEqual({ outcome: 'accepted', value: { isSettled: true } });
  });

  test.each([
    ['less is left', refundState(5999), { reason: 'not_refundable' }],
    ['it can only be paid to a bank account', refundState(14_950, 'BANK_PAYOUT'), { reason: 'not_supported' }],
    ['PayFast says no', refundState(14_950, 'NOT_AVAILABLE'), { reason: 'not_refundable' }],
  ])('%s: it is refused, and not asked for', async (_what, state, refusal) => {
    const heads: string[] = [];
    const url = await serve((socket, head) => {
      heads.push(head.slice(0, 4));
      socket.end(state);
    });
    expect(await payfast(url).refund(someRefund())).toMatchObject({ outcome: 'refused', ...refusal });
    expect(heads).toEqual(['GET ']);
  });

  test.each([
    [14_950, { found: 'absent' }],
    [8950, { found: 'facts', facts: [{ kind: 'refund.succeeded', money: { amount: 6000n } }] }],
    [9000, { found: 'unknown' }],
  ])('a lookup that finds %i cents left knows', async (left, found) => {
    const url = await serve((socket) => socket.end(refundState(left)));
    expect(await payfast(url).lookUpRefund(someRefund())).toMatchObject(found);
  });

  test('a refund that is not shown within a day of its call may be shown later', async () => {
    const url = await serve((socket) => socket.end(refundState(14_950)));
    expect(await payfast(url).lookUpRefund(someRefund({ calledAt: new Date() }))).toEqual({ found: 'unknown' });
  });
});

describe('an ITN whose signature holds', () => {
  // The vector of PayFast: its passphrase and merchant are those of `somePayFastSettings`.
  const itn =
    'm_payment_id=INV-2026-000123&pf_payment_id=1089250&payment_status=COMPLETE&item_name=Order+%23123+%282+items%29' +
    '&item_description=&amount_gross=149.50&amount_fee=-5.75&amount_net=143.75&custom_str1=tenant%7Ea%2Fb' +
    '&custom_str2=&custom_str3=&custom_str4=&custom_str5=&custom_int1=&custom_int2=&custom_int3=&custom_int4=' +
    '&custom_int5=&name_first=Thandi&name_last=O%27Brien+%26+S%C3%B6hne&email_address=thandi%2Btest%40example.co.za' +
    '&merchant_id=10000100';
  const notification = someNotification(`${itn}&signature=3ea4821dc4d8413e2df8bced1fc9e12d`);

  test('is taken where PayFast says VALID to the same text without the signature', async () => {
    let asked = '';
    const url = await serve((socket, head) => {
      asked = head;
      socket.end(answer(200, 'VALID\r\n'));
    });
    expect(await payfast(url).verify(notification)).toEqual({ eventKey: '1089250:COMPLETE', warnings: [] });
    expect(asked.startsWith('POST /eng/query/validate HTTP/1.1')).toBe(true);
    expect(asked.split('\r\n\r\n')[1]).toBe(itn);
  });

  test('from an address that is not known is taken with a warning', async () => {
    const url = await serve((socket) => socket.end(answer(200, 'VALID')));
    const { warnings } = await payfast(url).verify({ ...notification, remoteAddress: '203.0.113.9' });
    expect(warnings).toEqual([expect.stringContaining('203.0.113.9')]);
  });

  test('is forged where PayFast says INVALID', async () => {
    const url = await serve((socket) => socket.end(answer(200, 'INVALID\r\nVALID')));
    await expect(payfast(url).verify(notification)).rejects.toMatchObject({ code: 'FORGED' });
  });

  test('for another merchant is forged, and PayFast not asked', async () => {
    const settings = { ...somePayFastSettings(await nobody()), merchantId: '10000101' };
    const other = createPayFast({ ...calls(), settings, resolve: () => Promise.reject(new Error('none')) });
    await expect(other.verify(notification)).rejects.toMatchObject({ code: 'FORGED' });
  });

  test.each(unclear)('has to come again where PayFast %s', async (_fault, act) => {
    await expect(payfast(await serve(act)).verify(notification)).rejects.toMatchObject({ code: 'UNVERIFIED' });
  });
});

test('what is sent to PayFast is signed, in cents, and says testing', async () => {
  let request = '';
  const url = await serve((socket, head) => {
    request = head;
    const data = { response: true, message: 'ok(00)', pf_payment_id: '1324567' };
    socket.end(answer(200, JSON.stringify({ code: 200, status: 'success', data })));
  });
  expect(await storedOf(payfast(url)).charge(someCharge())).toMatchObject({ value: { chargeRef: '1324567' } });
  expect(request).toContain(`POST /subscriptions/${someCharge().method.token}/adhoc?testing=true HTTP/1.1`);
  expect(request).toMatch(/\r\nsignature: [0-9a-f]{32}\r\n/);
  expect(request).toMatch(/\r\ntimestamp: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+02:00\r\n/);
  expect(request.split('\r\n\r\n')[1]).toContain('amount=9900&');
});

test('the same call to Yoco has the same key, another attempt another', async () => {
  const keys: (string | undefined)[] = [];
  const url = await serve((socket, head) => {
    keys.push(/\r\nidempotency-key: (\S+)\r\n/.exec(head)?.[1]);
    socket.end(answer(500, '{}'));
  });
  for (const attempt of [1, 1, 2]) await yoco(url).createCheckout(someCheckout({ attempt }));
  const { paymentId } = someCheckout();
  expect(keys).toEqual([`pay:${paymentId}:1`, `pay:${paymentId}:1`, `pay:${paymentId}:2`]);
});

test.each([
  ['another amount', { amount: 14_951 }],
  ['another currency', { currency: 'USD' }],
  ['another mode', { processingMode: 'live' }],
  ['a page that is none', { redirectUrl: 'javascript:alert(1)' }],
])('a checkout of Yoco with %s is not taken', async (_what, changes) => {
  const checkout = {
    id: 'ch_1',
    redirectUrl: 'https://c.yoco.com/1',
    status: 'created',
    amount: 14_950,
    currency: 'ZAR',
  };
  const url = await serve((socket) => socket.end(answer(201, JSON.stringify({ ...checkout, ...changes }))));
  expect(await yoco(url).createCheckout(someCheckout())).toMatchObject({ outcome: 'unknown' });
});

test('Yoco refuses with 400, and with 422 had the key for another call', async () => {
  const refusing = await serve((socket) => socket.end(answer(400, '{"description":"no"}')));
  expect(await yoco(refusing).refund(someRefund())).toEqual({ outcome: 'refused', reason: 'not_accepted' });
  const conflicting = await serve((socket) => socket.end(answer(422, '{}')));
  expect(await yoco(conflicting).refund(someRefund())).toEqual({ outcome: 'unknown', reason: 'conflict' });
  const refunded = await serve((socket) =>
    socket.end(answer(400, '{"description":"Payment has already been refunded."}')),
  );
  expect(await yoco(refunded).refund(someRefund())).toEqual({ outcome: 'unknown', reason: 'conflict' });
});

test.each([
  [402, { type: 'card_error', code: 'card_declined', decline_code: 'generic_decline' }, 'declined'],
  [402, { type: 'card_error', code: 'card_declined', decline_code: 'insufficient_funds' }, 'insufficient_funds'],
  [402, { type: 'card_error', code: 'expired_card' }, 'card_expired'],
  [402, { type: 'card_error', code: 'authentication_required' }, 'authentication_required'],
  [400, { type: 'invalid_request_error', param: 'payment_method', message: 'It was detached' }, 'method_unusable'],
  [404, { type: 'invalid_request_error', code: 'resource_missing', param: 'customer' }, 'method_unusable'],
  [400, { type: 'invalid_request_error', code: 'amount_too_small', param: 'amount' }, 'amount_not_accepted'],
  [400, { type: 'invalid_request_error', code: 'A sentence of jane@example.com' }, 'not_accepted'],
])('a charge that Stripe refuses with %i and %j is %s', async (status, error, reason) => {
  const url = await serve((socket) => socket.end(answer(status, JSON.stringify({ error }))));
  const outcome = await storedOf(stripe(url)).charge(someCharge());
  expect(outcome).toMatchObject({ outcome: 'refused', reason });
  expect(JSON.stringify(outcome)).not.toContain('jane@');
});

test.each([
  ['a key that was used before', { type: 'idempotency_error' }, { outcome: 'unknown', reason: 'conflict' }],
  ['a limit', { type: 'invalid_request_error', code: 'rate_limit' }, { outcome: 'failed', reason: 'rate_limited' }],
])('%s at Stripe is no refusal', async (_what, error, outcome) => {
  const url = await serve((socket) => socket.end(answer(400, JSON.stringify({ error }))));
  expect(await storedOf(stripe(url)).charge(someCharge())).toMatchObject(outcome);
});

test('Stripe is asked once for a call, with the key of the attempt, and told nothing of latencies', async () => {
  const heads: string[] = [];
  const url = await serve((socket, head) => {
    heads.push(head);
    socket.resetAndDestroy();
  });
  await storedOf(stripe(url)).charge(someCharge());
  await storedOf(stripe(url)).charge(someCharge());
  const key = `pay:${someCharge().paymentId}:1`;
  expect(heads.map((head) => /\r\nidempotency-key: (\S+)\r\n/.exec(head)?.[1])).toEqual([key, key]);
  expect(heads.join('')).not.toMatch(/x-stripe-client-telemetry/i);
});

function storedOf({ stored }: PaymentProvider): StoredMethods {
  if (stored === undefined) throw new Error('the provider stores no methods');
  return stored;
}

function answer(status: number, body: string, ...headers: string[]): string {
  const length = headers.some((header) => header.startsWith('content-length'))
    ? []
    : [`content-length: ${Buffer.byteLength(body)}`];
  return [`HTTP/1.1 ${status} X`, 'connection: close', ...length, ...headers, '', body].join('\r\n');
}

function refundState(left: number, method = 'PAYMENT_SOURCE'): string {
  const state = { amount_original: 14_950, amount_available_for_refund: left, status: 'REFUNDABLE' };
  return answer(200, JSON.stringify({ ...state, refund_full: { method }, refund_partial: { method } }));
}

/** A server that does to each connection what it is told, once the request has come. */
async function serve(act: (socket: Socket, request: string) => void): Promise<URL> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    let request = '';
    socket.on('data', (chunk) => {
      const isWhole = isWholeRequest(request);
      request += chunk.toString('latin1');
      if (!isWhole && isWholeRequest(request)) act(socket, request);
    });
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return listen(server);
}

function isWholeRequest(request: string): boolean {
  const [head, body] = request.split('\r\n\r\n');
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head ?? '')?.[1] ?? 0);
  return body !== undefined && body.length >= length;
}

/** An address where nothing listens. */
async function nobody(): Promise<URL> {
  const server = createServer();
  const url = await listen(server);
  server.close();
  await once(server, 'close');
  return url;
}

async function listen(server: Server): Promise<URL> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return new URL(`http://127.0.0.1:${address.port}`);
}
