import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Field, formSignatures, signCall, signFields } from './payfast/signatures.ts';
import { startPayfast } from './payfast.ts';
import type { Simulator } from './simulator.ts';
import { type Receiver, startReceiver } from './testing/receiver.ts';

const PASSPHRASE = 'jt7NOE43FZPn';
let payfast: Simulator;
let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
  payfast = await startPayfast({ mode: 'live', retryDelaysMs: [5, 10] });
});

afterEach(async () => {
  await payfast.stop();
  await receiver[Symbol.asyncDispose]();
});

describe('the form', () => {
  test('leads to a page where the buyer pays, and the merchant is told before the way back', async () => {
    const page = await open();
    expect(await (await request(page)).body.text()).toContain('Tea &amp; cake: R149.50');
    const back = await choose(page, 'pay');
    expect(back).toMatchObject({ statusCode: 303, headers: { location: 'https://shop.example/return' } });
    expect(receiver.taken).toHaveLength(1);
    const notice = noticeAt(0);
    expect(Object.fromEntries(notice)).toMatchObject({
      m_payment_id: 'INV-1',
      payment_status: 'COMPLETE',
      amount_gross: '149.50',
      amount_fee: '-7.80',
      amount_net: '141.70',
      merchant_id: '10000100',
    });
    const signed = notice.filter(([name]) => name !== 'signature');
    expect(notice.at(-1)).toEqual(['signature', signFields(signed, PASSPHRASE)]);
  });

  test('cannot be paid twice', async () => {
    const page = await open();
    await choose(page, 'pay');
    expect((await choose(page, 'pay')).statusCode).toBe(409);
    expect(receiver.taken).toHaveLength(1);
  });

  test('can be declined and tried again, or cancelled, without a notification', async () => {
    const page = await open();
    expect(await (await choose(page, 'decline')).body.text()).toContain('declined');
    expect(await choose(page, 'cancel')).toMatchObject({ headers: { location: 'https://shop.example/cancel' } });
    expect(receiver.taken).toEqual([]);
  });

  test('says on its page nothing that a buyer could have put there as HTML, and runs no script', async () => {
    const answer = await request(await open({ item_name: '<script>alert(1)</script>' }));
    expect(answer.headers['content-security-policy']).toMatch(/^default-src 'none'; .*form-action 'self' https:/);
    expect(await answer.body.text()).not.toContain('<script');
  });

  test.each([
    ['another amount than was signed', { amount: '149.51' }, /signature/],
    ['another merchant', { merchant_id: '10000101' }, /merchant_id/],
    ['an amount without cents', { amount: '149.5' }, /amount/],
    ['less than 5.00', { amount: '4.99' }, /at least 5.00/],
    ['another currency', { currency: 'USD' }, /ZAR/],
    ['no name of the item', { item_name: ' ' }, /item_name/],
    ['a field that there is not', { ammount: '1.00' }, /ammount/],
    ['a type of subscription that there is not', { subscription_type: '3' }, /subscription_type/],
    ['a subscription without a frequency', { subscription_type: '1', cycles: '0' }, /frequency/],
  ])('is refused with %s', async (name, fields, fault) => {
    const signed = form(fields);
    const posted = name.startsWith('another amount') ? replace(form(), 'amount', '149.51') : signed;
    const answer = await post('/eng/process', posted);
    expect(answer.statusCode).toBe(400);
    expect(await answer.body.text()).toMatch(fault);
  });
});

describe('notifications', () => {
  test('are VALID as they were sent, and INVALID with anything else', async () => {
    await choose(await open(), 'pay');
    const [sent = ''] = (receiver.taken[0]?.body ?? '').split('&signature=');
    expect(await validate(sent)).toBe('VALID');
    expect(await validate(sent.replace('149.50', '149.51'))).toBe('INVALID');
    expect(await validate('')).toBe('INVALID');
  });

  test('are sent again until they are taken, and the buyer does not wait for that', async () => {
    receiver.answers.push(500, 503);
    expect((await choose(await open(), 'pay')).statusCode).toBe(303);
    expect(payfast.notifications().map(({ status }) => status)).toEqual([500]);
    await payfast.idle();
    expect(payfast.notifications().map(({ status }) => status)).toEqual([500, 503, 200]);
    expect(new Set(receiver.taken.map(({ body }) => body)).size).toBe(1);
  });

  test('come late, twice or never when they are told to', async () => {
    payfast.addFaults({ kind: 'delayed', delayMs: 30, times: 1 }, { kind: 'twice', times: 1 }, { kind: 'never' });
    expect((await choose(await open(), 'pay')).statusCode).toBe(303);
    expect(receiver.taken).toHaveLength(0);
    await payfast.idle();
    await choose(await open(), 'pay');
    expect(receiver.taken).toHaveLength(3);
    await choose(await open(), 'pay');
    await payfast.idle();
    expect(receiver.taken).toHaveLength(3);
  });

  test.each([
    ['bad-signature', { amount_gross: '149.50', merchant_id: '10000100' }, false],
    ['wrong-amount', { amount_gross: '150.50', merchant_id: '10000100' }, true],
    ['wrong-merchant', { amount_gross: '149.50', merchant_id: '10099999' }, true],
  ] as const)('are wrong in one way: %s', async (kind, fields, isSigned) => {
    payfast.addFaults({ kind });
    await choose(await open(), 'pay');
    const notice = noticeAt(0);
    expect(Object.fromEntries(notice)).toMatchObject(fields);
    const signature = signFields(
      notice.filter(([name]) => name !== 'signature'),
      PASSPHRASE,
    );
    expect(Object.fromEntries(notice)['signature'] === signature).toBe(isSigned);
  });
});

describe('the API', () => {
  test('charges a token, and tells of it', async () => {
    const token = await subscribe({ subscription_type: '2' });
    const fields = { amount: '9900', item_name: 'May', m_payment_id: 'INV-2' };
    const answer = await call('POST', `/subscriptions/${token}/adhoc`, fields);
    expect(answer).toMatchObject({ code: 200, status: 'success', data: { response: true } });
    await payfast.idle();
    expect(Object.fromEntries(noticeAt(1))).toMatchObject({
      m_payment_id: 'INV-2',
      amount_gross: '99.00',
      token,
      pf_payment_id: answer.data.pf_payment_id,
    });
    expect(await call('GET', `/process/query/${answer.data.pf_payment_id}`)).toMatchObject({
      data: { response: { m_payment_id: 'INV-2', status: 'COMPLETE', amount: 9900 } },
    });
  });

  test('tells before it answers when it is told to, or not at all where the call says so', async () => {
    const token = await subscribe({ subscription_type: '2' });
    payfast.addFaults({ kind: 'before-the-answer', times: 1 });
    await call('POST', `/subscriptions/${token}/adhoc`, { amount: '9900', item_name: 'May' });
    expect(receiver.taken).toHaveLength(2);
    await call('POST', `/subscriptions/${token}/adhoc`, { amount: '9900', item_name: 'June', itn: 'false' });
    await payfast.idle();
    expect(receiver.taken).toHaveLength(2);
  });

  test('charges although its answer is lost', async () => {
    const token = await subscribe({ subscription_type: '2' });
    payfast.addFaults({ kind: 'reset', match: 'adhoc' });
    await expect(call('POST', `/subscriptions/${token}/adhoc`, { amount: '9900', item_name: 'May' })).rejects.toThrow(
      /ECONNRESET|closed/,
    );
    await payfast.idle();
    expect(Object.fromEntries(noticeAt(1))).toMatchObject({ amount_gross: '99.00', token });
  });

  test('does not charge a card that is declined, nor a token that is cancelled', async () => {
    const token = await subscribe({ subscription_type: '2' });
    payfast.setOutcomes({ [token]: 'declined' });
    const charge = { amount: '9900', item_name: 'May' };
    expect(await call('POST', `/subscriptions/${token}/adhoc`, charge)).toMatchObject({ code: 400, status: 'failed' });
    expect(await call('PUT', `/subscriptions/${token}/cancel`)).toMatchObject({ data: { response: true } });
    payfast.setOutcomes({ [token]: 'paid' });
    expect(await call('POST', `/subscriptions/${token}/adhoc`, charge)).toMatchObject({
      data: { response: 4, message: 'The subscription is not in a valid state.' },
    });
    await payfast.idle();
    expect(Object.fromEntries(noticeAt(1))).toMatchObject({ payment_status: 'CANCELLED', token, pf_payment_id: '' });
    expect(receiver.taken).toHaveLength(2);
  });

  test('shows, pauses, resumes and changes a scheduled subscription', async () => {
    const terms = { subscription_type: '1', frequency: '3', cycles: '12', billing_date: '2026-01-31' };
    const token = await subscribe({ ...terms, recurring_amount: '99.00' });
    const shown = async () => (await call('GET', `/subscriptions/${token}/fetch`)).data.response;
    expect(await shown()).toMatchObject({
      amount: 9900,
      cycles: 12,
      cycles_complete: 1,
      run_date: '2026-02-28T00:00:00+02:00',
      status_text: 'ACTIVE',
    });
    await call('PUT', `/subscriptions/${token}/pause`, { cycles: '2' });
    expect(await shown()).toMatchObject({ status_text: 'PAUSED', run_date: '2026-04-28T00:00:00+02:00' });
    await call('PUT', `/subscriptions/${token}/unpause`);
    await call('PATCH', `/subscriptions/${token}/update`, { amount: '12900', run_date: '2026-05-01' });
    expect(await shown()).toMatchObject({ amount: 12_900, run_date: '2026-05-01T00:00:00+02:00' });
    expect(await call('PATCH', `/subscriptions/${token}/update`)).toMatchObject({ code: 400 });
  });

  test('tells of renewals with the fields of the first payment, and of failed ones not at all', async () => {
    const token = await subscribe({ subscription_type: '1', frequency: '3', cycles: '0' });
    const renew = async (outcome: string) =>
      (await request(`${payfast.url}/_control/renewals`, { method: 'POST', body: JSON.stringify({ token, outcome }) }))
        .statusCode;
    expect(await renew('paid')).toBe(204);
    await payfast.idle();
    expect(Object.fromEntries(noticeAt(1))).toMatchObject({ m_payment_id: 'INV-1', token });
    for (let failure = 0; failure < 3; failure += 1) expect(await renew('failed')).toBe(204);
    expect(await renew('paid')).toBe(409);
    expect((await call('GET', `/subscriptions/${token}/fetch`)).data.response.status_text).toBe('LOCKED');
    await payfast.idle();
    expect(receiver.taken).toHaveLength(2);
  });

  test('refunds in parts, and no more than was paid', async () => {
    await choose(await open(), 'pay');
    const id = Object.fromEntries(noticeAt(0))['pf_payment_id'] ?? '';
    const refund = (amount: string) =>
      call('POST', `/refunds/${id}`, { amount, reason: 'Returned', notify_buyer: '1' });
    expect(await call('GET', `/refunds/query/${id}`)).toMatchObject({
      amount_original: 14_950,
      amount_available_for_refund: 14_950,
      status: 'REFUNDABLE',
    });
    expect(await refund('10000')).toMatchObject({ data: { response: true } });
    expect(await refund('5000')).toMatchObject({ code: 400 });
    expect(await refund('0')).toMatchObject({ code: 400 });
    expect(await refund('4950')).toMatchObject({ code: 200 });
    expect(await call('GET', `/refunds/query/${id}`)).toMatchObject({ status: 'COMPLETED' });
    expect(await call('GET', `/refunds/${id}`)).toMatchObject({ data: { response: { available_balance: 0 } } });
  });

  test('lists movements of money as CSV, refunds too', async () => {
    await choose(await open({ item_name: 'Tea, "Earl Grey"' }), 'pay');
    const id = Object.fromEntries(noticeAt(0))['pf_payment_id'] ?? '';
    await call('POST', `/refunds/${id}`, { amount: '4950', reason: 'Returned', notify_buyer: '1' });
    const lines = (await callText('GET', '/transactions/history')).trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[1]).toContain(`,"Tea, ""Earl Grey""",,ZAR,CC,149.50,-7.80,141.70,141.70,INV-1,${id},`);
    expect(lines[2]).toContain(`,ZAR,CC,-49.50,0.00,-49.50,92.20,INV-1,${id},`);
    const none = await callText('GET', '/transactions/history?from=2020-01-01&to=2020-12-31');
    expect(none.trimEnd().split('\n')).toHaveLength(1);
  });

  test.each([
    ['no signature', { signature: '' }, 400],
    ['a signature of something else', { signature: '0'.repeat(32) }, 401],
    ['another version', { version: 'v2' }, 400],
    ['no time', { timestamp: 'yesterday' }, 400],
    ['another merchant', { 'merchant-id': '10000101' }, 401],
  ])('refuses calls with %s', async (_name, headers, code) => {
    expect(await call('GET', '/ping', {}, headers)).toMatchObject({ code, status: 'failed' });
  });

  test('wants testing=true in the sandbox, where nothing can be refunded', async () => {
    expect(await call('GET', '/ping?testing=true')).toMatchObject({ code: 401 });
    await payfast.stop();
    payfast = await startPayfast();
    expect(await call('GET', '/ping')).toMatchObject({ code: 401 });
    expect(await call('GET', '/ping?testing=true')).toBe('API V1');
    await choose(await open(), 'pay');
    const id = Object.fromEntries(noticeAt(0))['pf_payment_id'] ?? '';
    expect(await call('GET', `/refunds/query/${id}?testing=true`)).toMatchObject({ code: 404 });
  });
});

test('forgets everything', async () => {
  const page = await open();
  await choose(page, 'pay');
  await payfast.reset();
  expect((await request(page)).statusCode).toBe(404);
  expect(await validate((receiver.taken[0]?.body ?? '').split('&signature=')[0] ?? '')).toBe('INVALID');
});

function form(fields: Readonly<Record<string, string>> = {}): readonly Field[] {
  const all = Object.entries({
    merchant_id: '10000100',
    merchant_key: '46f0cd694581a',
    return_url: 'https://shop.example/return',
    cancel_url: 'https://shop.example/cancel',
    notify_url: `${receiver.url}/itn`,
    name_first: "Zoë O'Neill",
    m_payment_id: 'INV-1',
    amount: '149.50',
    item_name: 'Tea & cake',
    ...fields,
  });
  return [...all, ['signature', formSignatures(all, PASSPHRASE)[0] ?? '']];
}

function replace(fields: readonly Field[], name: string, value: string): readonly Field[] {
  return fields.map(([key, old]) => [key, key === name ? value : old]);
}

/** @returns the page. */
async function open(fields: Readonly<Record<string, string>> = {}): Promise<string> {
  const { statusCode, headers } = await post('/eng/process', form(fields));
  expect(statusCode).toBe(302);
  return `${payfast.url}${String(headers['location'])}`;
}

async function subscribe(fields: Readonly<Record<string, string>>): Promise<string> {
  await choose(await open(fields), 'pay');
  const token = Object.fromEntries(noticeAt(0))['token'] ?? '';
  expect(token).toHaveLength(36);
  return token;
}

function choose(page: string, outcome: string) {
  return post(page.slice(payfast.url.length), [['outcome', outcome]]);
}

function post(path: string, fields: readonly Field[]) {
  const body = new URLSearchParams(fields.map(([name, value]) => [name, value])).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  return request(`${payfast.url}${path}`, { method: 'POST', headers, body });
}

function noticeAt(index: number): readonly Field[] {
  return [...new URLSearchParams(receiver.taken[index]?.body)];
}

async function validate(body: string): Promise<string> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const answer = await request(`${payfast.url}/eng/query/validate`, { method: 'POST', headers, body });
  return await answer.body.text();
}

async function call(...[method, path, fields, headers]: Parameters<typeof callText>) {
  return JSON.parse(await callText(method, path, fields, headers));
}

async function callText(
  method: 'GET' | 'POST' | 'PUT' | 'PATCH',
  path: string,
  ...[fields = {}, headers = {}]: [
    fields?: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ]
): Promise<string> {
  const own = { 'merchant-id': '10000100', version: 'v1', timestamp: '2026-11-20T12:00:01+02:00' };
  const query = [...new URL(path, payfast.url).searchParams];
  const signature = signCall([...Object.entries({ ...own, ...fields }), ...query], PASSPHRASE);
  const answer = await request(`${payfast.url}${path}`, {
    method,
    headers: { ...own, signature, 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: method === 'GET' ? null : new URLSearchParams(fields).toString(),
  });
  return await answer.body.text();
}
