import twilio from 'twilio';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Simulator } from '../simulator.ts';
import { type Receiver, startReceiver } from '../testing/receiver.ts';
import { startTwilio } from './twilio.ts';
import { twilioSignature } from './twilio-signature.ts';

const ACCOUNT = 'AC00000000000000000000000000000001';
const SERVICE = 'MG00000000000000000000000000000001';
const TOKEN = '12345';
const TO = '+27821234567';
const FROM = '+27600000001';

let simulator: Simulator;
let receiver: Receiver;
let callback: string;

beforeEach(async () => {
  simulator = await startTwilio({ accountSid: ACCOUNT, authToken: TOKEN, senders: [FROM, 'Rollcall'] });
  receiver = await startReceiver();
  callback = `${receiver.url}/hooks/twilio?tenant=a%20b`;
});

afterEach(async () => {
  await simulator.stop();
  await receiver[Symbol.asyncDispose]();
});

test('signs as the vector of its library says', () => {
  // Made with twilio 6.2.0 (npm) and twilio 9.13.0 (PyPI), which agree.
  const url = 'https://comms.example.co.za/hooks/twilio/status?tenant=a';
  const fields = {
    AccountSid: ACCOUNT,
    ApiVersion: '2010-04-01',
    From: FROM,
    MessageSid: 'SM00000000000000000000000000000001',
    MessageStatus: 'delivered',
    SmsSid: 'SM00000000000000000000000000000001',
    SmsStatus: 'delivered',
    To: TO,
  };
  expect(twilioSignature(TOKEN, url, fields)).toBe('lKKAwCxJQ4BQ28+cEDXLnOiUzeg=');
});

describe('a message', () => {
  test('is taken from the official client, fetched and found by its recipient', async () => {
    const created = await client().messages.create({ to: TO, from: FROM, body: 'Hello' });
    expect(created).toMatchObject({ status: 'queued', to: TO, from: FROM, numSegments: '1', errorCode: null });
    expect(created.sid).toMatch(/^SM[0-9a-f]{32}$/);
    expect(await client().messages(created.sid).fetch()).toMatchObject({ status: 'delivered', body: 'Hello' });
    expect(await client().messages.list({ to: TO })).toMatchObject([{ sid: created.sid }]);
    expect(await client().messages.list({ to: '+27820000000' })).toEqual([]);
  });

  test('is accepted by a messaging service, and parted as Twilio does', async () => {
    // 134 UTF-16 units: two parts of 67, but for the pair that must not be split.
    const body = `${'a'.repeat(66)}😀${'a'.repeat(66)}`;
    const created = await client().messages.create({ to: TO, messagingServiceSid: SERVICE, body });
    expect(created).toMatchObject({ status: 'accepted', from: null, numSegments: '3', messagingServiceSid: SERVICE });
  });

  test('is reported as queued, sent and delivered by callbacks that the official library verifies', async () => {
    const { sid } = await client().messages.create({ to: TO, from: FROM, body: 'Hello', statusCallback: callback });
    await simulator.idle();
    const forms = receiver.taken.map(({ body }) => Object.fromEntries(new URLSearchParams(body)));
    expect(forms.map((form) => form['MessageStatus'])).toEqual(['queued', 'sent', 'delivered']);
    expect(forms[2]).toMatchObject({ MessageSid: sid, SmsSid: sid, AccountSid: ACCOUNT, To: TO, From: FROM });
    expect(receiver.taken.map(isVerified)).toEqual([true, true, true]);
  });

  test('is reported with a signature that does not hold', async () => {
    simulator.addFaults({ kind: 'bad-signature', match: 'MessageStatus=sent' });
    await client().messages.create({ to: TO, from: FROM, body: 'Hello', statusCallback: callback });
    await simulator.idle();
    expect(receiver.taken.map(isVerified)).toEqual([false, false, false]);
  });

  test.each(['30003', '30005', '30006', '30007'])('ends undelivered with %s', async (code) => {
    simulator.setOutcomes({ [TO]: code });
    const { sid, errorCode } = await client().messages.create({
      to: TO,
      from: FROM,
      body: 'Hello',
      statusCallback: callback,
    });
    await simulator.idle();
    expect(errorCode).toBeNull();
    expect(receiver.taken.map(({ body }) => new URLSearchParams(body).get('ErrorCode'))).toEqual([null, null, code]);
    expect(await client().messages(sid).fetch()).toMatchObject({ status: 'undelivered', errorCode: Number(code) });
  });

  test('of somebody is handed on to the webhook of incoming messages, and signed', async () => {
    await expect(simulator.write({ from: TO, text: 'STOP' })).rejects.toThrow('twilio has nowhere');
    simulator.setWebhook(callback);
    await simulator.write({ from: TO, text: 'STOP' });
    await simulator.idle();
    const [taken] = receiver.taken;
    const fields = Object.fromEntries(new URLSearchParams(taken?.body));
    expect(fields).toMatchObject({ From: TO, To: FROM, Body: 'STOP', SmsStatus: 'received' });
    expect(fields['MessageStatus']).toBeUndefined();
    expect(taken?.headers['x-twilio-signature']).toBe(twilioSignature(TOKEN, callback, fields));
  });

  test('stays where it is said to', async () => {
    simulator.setOutcomes({ [TO]: 'sent' });
    const { sid } = await client().messages.create({ to: TO, from: FROM, body: 'Hello', statusCallback: callback });
    await simulator.idle();
    expect(receiver.taken).toHaveLength(2);
    expect(await client().messages(sid).fetch()).toMatchObject({ status: 'sent' });
  });
});

describe('a refusal', () => {
  test.each([
    [{ to: '' }, 21604],
    [{ from: '' }, 21603],
    [{ body: '' }, 21602],
    [{ body: 'a'.repeat(1601) }, 21617],
    [{ to: '+99912345678' }, 21211],
    [{ to: '0821234567' }, 21211],
    [{ to: '+27114471234' }, 21614],
    [{ from: 'Twelve chars' }, 21212],
    [{ from: '+27600000002' }, 21606],
    [{ validityPeriod: 36_001 }, 21729],
    [{ statusCallback: 'ftp://127.0.0.1/' }, 21609],
    [{ messagingServiceSid: 'MG2' }, 21701],
  ])('of %j has code %i', async (changes, code) => {
    const message = { to: TO, from: FROM, body: 'Hello', ...changes };
    await expect(client().messages.create(message)).rejects.toMatchObject({ code, status: 400 });
    expect(simulator.requests()).toMatchObject([{ isAccepted: false }]);
  });

  test.each(['21211', '21610', '21614'])('of a recipient has the code %s that was said', async (code) => {
    simulator.setOutcomes({ [TO]: code });
    const message = { to: TO, from: FROM, body: 'Hello' };
    await expect(client().messages.create(message)).rejects.toMatchObject({ code: Number(code) });
  });

  test.each([
    [429, 20429],
    [503, 20503],
    [500, 20500],
  ])('with %i has code %i', async (status, code) => {
    simulator.addFaults({ kind: 'status', status, retryAfter: 1 });
    const message = { to: TO, from: FROM, body: 'Hello' };
    await expect(client().messages.create(message)).rejects.toMatchObject({ code, status });
  });

  test('of credentials and of strangers', async () => {
    const message = { to: TO, from: FROM, body: 'Hello' };
    await expect(client('54321').messages.create(message)).rejects.toMatchObject({ code: 20003, status: 401 });
    await expect(client().messages('SM1').fetch()).rejects.toMatchObject({ code: 20404, status: 404 });
    const other = `${simulator.url}/2010-04-01/Accounts/AC2/Messages.json`;
    const authorization = `Basic ${Buffer.from(`${ACCOUNT}:${TOKEN}`).toString('base64')}`;
    expect((await fetch(other, { headers: { authorization } })).status).toBe(404);
    expect((await fetch(other)).status).toBe(401);
  });
});

/** The official client, whose host cannot be set: its requests are led here. */
function client(token = TOKEN): twilio.Twilio {
  const httpClient = new twilio.RequestClient();
  const request = httpClient.request.bind(httpClient);
  httpClient.request = (options) =>
    request({ ...options, uri: options.uri.replace('https://api.twilio.com', simulator.url) });
  return twilio(ACCOUNT, token, { httpClient });
}

function isVerified({ headers, body, target }: Receiver['taken'][number]): boolean {
  const signature = headers['x-twilio-signature']?.toString() ?? '';
  const fields = Object.fromEntries(new URLSearchParams(body));
  return twilio.validateRequest(TOKEN, signature, `${receiver.url}${target}`, fields);
}
