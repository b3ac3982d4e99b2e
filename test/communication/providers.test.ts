import type { MessageProvider, OutgoingMessage } from '@rollcall/communication/domain/ports.ts';
import { createBulkSms } from '@rollcall/communication/providers/bulksms.ts';
import { createClickatell } from '@rollcall/communication/providers/clickatell.ts';
import { createProviderAgent } from '@rollcall/communication/providers/http-call.ts';
import { createSendGrid } from '@rollcall/communication/providers/sendgrid.ts';
import { createTwilio } from '@rollcall/communication/providers/twilio.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { startSendGrid } from '@rollcall/simulators/email/sendgrid.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startBulkSms } from '@rollcall/simulators/sms/bulksms.ts';
import { startClickatell } from '@rollcall/simulators/sms/clickatell.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { type Receiver, startReceiver } from '@rollcall/simulators/testing/receiver.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { email, ofChannel, sms } from './provider-worlds.ts';

const deps = { dispatcher: createProviderAgent(), clock: systemClock };
const timeoutMs = 3000;
const { signal } = new AbortController();

interface Started {
  readonly simulator: Simulator;
  readonly provider: MessageProvider;
}

interface Case {
  readonly name: string;
  readonly message: OutgoingMessage;
  /** How a notification names the message: by our id, where it was handed on. */
  readonly isNamed: boolean;
  readonly start: (callback: string) => Promise<Started>;
}

// What becomes of messages by them and all others: provider-conformance.test.ts.
const cases: readonly Case[] = [
  {
    name: 'twilio',
    message: sms,
    isNamed: true,
    async start(callback) {
      const accountSid = `AC${'0'.repeat(31)}1`;
      const simulator = await startTwilio({ accountSid, authToken: 'right', retryDelaysMs: [], webhookUrl: callback });
      const settings = {
        baseUrl: new URL(simulator.url),
        timeoutMs,
        accountSid,
        sender: '+27600000001',
        statusCallbackUrl: callback,
      };
      return { simulator, provider: ofChannel(createTwilio({ ...settings, authToken: 'right' }, deps)) };
    },
  },
  {
    name: 'bulksms',
    message: sms,
    isNamed: false,
    async start(callback) {
      const simulator = await startBulkSms({
        tokenId: 'id',
        tokenSecret: 'right',
        webhookUrl: `${callback}?token=t`,
        retryDelaysMs: [],
      });
      const settings = { baseUrl: new URL(simulator.url), timeoutMs, user: 'id', notificationToken: 't' };
      return { simulator, provider: ofChannel(createBulkSms({ ...settings, password: 'right' }, deps)) };
    },
  },
  {
    name: 'clickatell',
    message: sms,
    isNamed: true,
    async start(callback) {
      const simulator = await startClickatell({
        apiKey: 'right',
        callbackUrl: `${callback}?token=t`,
        retryDelaysMs: [],
      });
      const settings = { baseUrl: new URL(simulator.url), timeoutMs, notificationToken: 't' };
      return { simulator, provider: ofChannel(createClickatell({ ...settings, apiKey: 'right' }, deps)) };
    },
  },
  {
    name: 'sendgrid',
    message: email,
    isNamed: true,
    async start(callback) {
      const simulator = await startSendGrid({ apiKey: 'right', eventWebhookUrl: callback, retryDelaysMs: [] });
      const answer = await fetch(`${simulator.url}/_control/credentials`);
      const { eventWebhookPublicKey } = (await answer.json()) as { eventWebhookPublicKey: string };
      const settings = { baseUrl: new URL(simulator.url), timeoutMs, notificationKey: eventWebhookPublicKey };
      return { simulator, provider: ofChannel(createSendGrid({ ...settings, apiKey: 'right' }, deps)) };
    },
  },
];

describe.each(cases)('$name', ({ name, message, isNamed, start }) => {
  let receiver: Receiver;
  let simulator: Simulator;
  let provider: MessageProvider;

  beforeEach(async () => {
    receiver = await startReceiver();
    ({ simulator, provider } = await start(`${receiver.url}/notifications/${name}`));
  });

  afterEach(async () => {
    await simulator.stop();
    await receiver[Symbol.asyncDispose]();
  });

  /** What the provider reads of the notifications that came. */
  async function reports() {
    await simulator.idle();
    return Promise.all(
      receiver.taken.map(async ({ target, headers, body }) =>
        provider.readNotification?.({
          url: `${receiver.url}${target}`,
          headers: Object.fromEntries(Object.entries(headers).map(([field, value]) => [field, String(value)])),
          body: Buffer.from(body),
        }),
      ),
    );
  }

  const taken = () => simulator.requests().filter(({ isAccepted }) => isAccepted);

  test('a message is accepted, and its notifications tell how far it came', async () => {
    const outcome = await provider.send(message, signal);
    expect(outcome).toEqual({ outcome: 'accepted', providerId: expect.stringMatching(/./) });
    const providerId = outcome.outcome === 'accepted' ? outcome.providerId : '';
    expect(taken()).toHaveLength(1);
    const read = (await reports()).flatMap((reading) => (typeof reading === 'object' ? reading.reports : []));
    expect(read.map(({ receipt }) => receipt)).toContain('delivered');
    expect(new Set(read.map((report) => report.providerId))).toEqual(new Set([providerId]));
    expect(new Set(read.map(({ messageId }) => messageId))).toEqual(new Set([isNamed ? message.id : undefined]));
    expect(new Set(read.map(({ eventKey }) => eventKey)).size).toBe(read.length);
  });

  test.runIf(message.channel === 'sms')('what a recipient writes is read as STOP and START, by one rule', async () => {
    for (const text of [' stop', 'START', 'Thanks']) await simulator.write({ from: sms.to, text });
    const read = (await reports()).flatMap((reading) => (typeof reading === 'object' ? reading.reports : []));
    expect(read.map(({ recipient, suppress, isOptIn }) => [recipient, suppress?.kind ?? isOptIn])).toEqual([
      [sms.to, 'opted-out'],
      [sms.to, true],
    ]);
  });

  test('a forged notification is one', async () => {
    simulator.addFaults({ kind: 'bad-signature' });
    await provider.send(message, signal);
    const read = await reports();
    expect(read.length).toBeGreaterThan(0);
    expect(read.every((reading) => reading === 'forged')).toBe(true);
  });

  test('a notification that comes twice has the same keys', async () => {
    simulator.addFaults({ kind: 'twice' });
    await provider.send(message, signal);
    const read = (await reports()).flatMap((reading) => (typeof reading === 'object' ? reading.reports : []));
    expect(read.length).toBeGreaterThan(0);
    expect(2 * new Set(read.map(({ eventKey }) => eventKey)).size).toBe(read.length);
  });

  test('a date in Retry-After is one', async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    simulator.addFaults({ kind: 'status', status: 429, retryAfter: date });
    const outcome = await provider.send(message, signal);
    expect(outcome.outcome === 'failed' ? outcome.retryAfterMs : 0).toBeGreaterThan(50_000);
  });
});

test('BulkSMS takes a repetition for what it is', async () => {
  await using simulator = await startBulkSms({ tokenId: 'id', tokenSecret: 's' });
  const settings = { baseUrl: new URL(simulator.url), timeoutMs, user: 'id', password: 's', notificationToken: 't' };
  const provider = createBulkSms(settings, deps);
  simulator.addFaults({ kind: 'accept-and-hang', times: 1 });
  expect(await provider.send(sms, signal)).toMatchObject({ outcome: 'unknown' });
  expect(await provider.send(sms, signal)).toMatchObject({ outcome: 'accepted' });
  const answer = await fetch(`${simulator.url}/_control/state`);
  const { messages } = (await answer.json()) as { messages: unknown[] };
  expect(messages).toHaveLength(1);
});

test.each([
  { to: '+27821111111', outcome: '21610', refused: { cause: 'recipient', suppress: { kind: 'opted-out' } } },
  { to: '+27821111112', outcome: '21211', refused: { cause: 'recipient', reason: 'twilio 21211' } },
])('Twilio refuses $outcome for good', async ({ to, outcome, refused }) => {
  await using simulator = await startTwilio({ accountSid: 'AC1', authToken: 't' });
  simulator.setOutcomes({ [to]: outcome });
  const settings = {
    baseUrl: new URL(simulator.url),
    timeoutMs,
    accountSid: 'AC1',
    authToken: 't',
    sender: '+27600000001',
  };
  expect(await createTwilio(settings, deps).send({ ...sms, to }, signal)).toMatchObject({
    outcome: 'refused',
    ...refused,
  });
});

test('Clickatell names who opted out, and an account without credit is no fault of the message', async () => {
  await using simulator = await startClickatell({ apiKey: 'k', credits: 1 });
  const provider = createClickatell(
    { baseUrl: new URL(simulator.url), timeoutMs, apiKey: 'k', notificationToken: 't' },
    deps,
  );
  simulator.setOutcomes({ [sms.to]: '26' });
  const optedOut = { outcome: 'refused', cause: 'recipient', reason: 'clickatell 26', suppress: { kind: 'opted-out' } };
  expect(await provider.send(sms, signal)).toEqual(optedOut);
  await provider.send({ ...sms, to: '+27821234568' }, signal);
  expect(await provider.send({ ...sms, to: '+27821234568' }, signal)).toMatchObject({
    outcome: 'refused',
    cause: 'credit',
  });
});
