import { createPublicKey, verify } from 'node:crypto';
import { systemClock } from '@rollcall/platform/clock.ts';
import { EventWebhook } from '@sendgrid/eventwebhook';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Simulator } from '../simulator.ts';
import { type Receiver, startReceiver } from '../testing/receiver.ts';
import { startSendGrid } from './sendgrid.ts';

const FROM = 'shop@example.co.za';
const TO = 'thandi@example.co.za';
const NOW = new Date('2026-11-20T10:00:00Z');

let simulator: Simulator;
let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
  simulator = await startSendGrid({
    apiKey: 'SG.a.b',
    senders: [FROM],
    eventWebhookUrl: `${receiver.url}/hooks/sendgrid`,
    retryDelaysMs: [],
    clock: { ...systemClock, now: () => NOW },
  });
});

afterEach(async () => {
  await simulator.stop();
  await receiver[Symbol.asyncDispose]();
});

test('the official library accepts the vector that our tests and adapters share', () => {
  // From sendgrid-php, test/unit/EventWebhookTest.php: the body ends in CRLF, which is signed.
  const key =
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==';
  const signature = 'MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=';
  const body = `${JSON.stringify([
    {
      email: 'hello@world.com',
      event: 'dropped',
      reason: 'Bounced Address',
      sg_event_id: 'ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA',
      sg_message_id: 'LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0',
      'smtp-id': '<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>',
      timestamp: 1600112492,
    },
  ])}\r\n`;
  expect(isVerified(key, { body, signature, timestamp: '1600112502' })).toEqual([true, true]);
  expect(isVerified(key, { body: body.trim(), signature, timestamp: '1600112502' })).toEqual([false, false]);
});

describe('a mail', () => {
  test('is accepted with 202, an id and no body', async () => {
    const answer = await send({});
    expect(answer.status).toBe(202);
    expect(answer.messageId).toMatch(/^[\w-]{22}$/);
    expect(answer.body).toBe('');
    expect(await state()).toMatchObject({ mails: [{ messageId: answer.messageId, mail: { subject: 'Hello' } }] });
  });

  test('is only checked in the sandbox mode', async () => {
    expect((await send({ mail_settings: { sandbox_mode: { enable: true } } })).status).toBe(200);
    expect(await state()).toEqual({ mails: [] });
  });

  test.each([
    [{ from: undefined }, 'from.email'],
    [{ from: { email: 'shop' } }, 'from.email'],
    [{ reply_to: { email: 'a@b' } }, 'reply_to.email'],
    [{ personalizations: [] }, 'personalizations'],
    [{ personalizations: [{}] }, 'personalizations.0.to'],
    [{ personalizations: [{ to: [{ email: 'a@example.com, b@example.com' }] }] }, 'personalizations.0.to.0.email'],
    [{ personalizations: [{ to: [{ email: TO }], cc: [{ email: TO.toUpperCase() }] }] }, 'personalizations.0'],
    [{ personalizations: [{ to: addresses(1001) }] }, 'personalizations'],
    [{ personalizations: 'a' }, 'personalizations'],
    [{ subject: '' }, 'subject'],
    [{ content: [] }, 'content'],
    [{ content: [{ type: 'text/plain', value: '' }] }, 'content.0.value'],
    [{ content: [html('a'), { type: 'text/plain', value: 'a' }] }, 'content'],
    [{ headers: { 'Reply-To': 'a' } }, 'headers'],
    [{ custom_args: { a: 'a'.repeat(10_000) } }, 'custom_args'],
    [{ custom_args: { a: 1 } }, 'custom_args.a'],
    [{ send_at: NOW.getTime() / 1000 + 72 * 3600 + 1 }, 'send_at'],
    [{ attachments: [{ content: '', filename: 'a' }] }, 'attachments.0.content'],
  ])('is refused for %j', async (changes, field) => {
    const { status, body } = await send(changes);
    expect(status).toBe(400);
    expect(JSON.parse(body)).toEqual({ errors: [{ message: expect.any(String), field, help: null }] });
    expect(await state()).toEqual({ mails: [] });
  });

  test('is refused with every fault at once', async () => {
    const { body } = await send({ from: undefined, personalizations: [], subject: undefined, content: undefined });
    expect(JSON.parse(body).errors.map(({ field }: { field: string }) => field)).toEqual([
      'from.email',
      'personalizations',
      'subject',
      'content',
    ]);
  });

  test('is refused from strangers, and from addresses that nobody verified', async () => {
    for (const key of ['', 'SG.a.c']) expect((await send({}, key)).status).toBe(401);
    const { status, body } = await send({ from: { email: 'ceo@example.co.za' } });
    expect([status, JSON.parse(body).errors[0].field]).toEqual([403, 'from']);
  });
});

describe('events', () => {
  test('go to the address that was said last', async () => {
    simulator.setWebhook(`${receiver.url}/elsewhere`);
    await send({});
    await simulator.idle();
    expect(receiver.taken.map(({ target }) => target)).toEqual(['/elsewhere', '/elsewhere']);
  });

  test('are signed, with the CRLF at the end of the body', async () => {
    const { eventWebhookPublicKey } = await credentials();
    await send({});
    await simulator.idle();
    expect(receiver.taken).toHaveLength(2);
    for (const { body, headers } of receiver.taken) {
      const signature = String(headers['x-twilio-email-event-webhook-signature']);
      const timestamp = String(headers['x-twilio-email-event-webhook-timestamp']);
      expect(body).toMatch(/\]\r\n$/);
      expect(timestamp).toBe('1795168800');
      expect(isVerified(eventWebhookPublicKey, { body, signature, timestamp })).toEqual([true, true]);
      expect(isVerified(eventWebhookPublicKey, { body: body.trim(), signature, timestamp })).toEqual([false, false]);
    }
  });

  test('are signed by somebody else where that is asked for', async () => {
    const { eventWebhookPublicKey } = await credentials();
    simulator.addFaults({ kind: 'bad-signature' });
    await send({});
    await simulator.idle();
    for (const { body, headers } of receiver.taken) {
      const signature = String(headers['x-twilio-email-event-webhook-signature']);
      const timestamp = String(headers['x-twilio-email-event-webhook-timestamp']);
      expect(isVerified(eventWebhookPublicKey, { body, signature, timestamp })).toEqual([false, false]);
    }
  });

  test('carry the arguments of the mail, an id of their own, and that of the mail up to the first point', async () => {
    const { messageId } = await send({
      custom_args: { tenant: 'a', message: 'all' },
      personalizations: [{ to: [{ email: TO }], custom_args: { message: 'ours-1' } }],
    });
    await simulator.idle();
    const [processed, delivered] = batches().flat();
    expect(processed).toMatchObject({ event: 'processed', email: TO, tenant: 'a', message: 'ours-1' });
    expect(delivered).toMatchObject({ event: 'delivered', email: TO });
    expect(String(delivered?.['sg_message_id']).split('.')[0]).toBe(messageId);
    expect(delivered?.['sg_event_id']).not.toBe(processed?.['sg_event_id']);
  });

  test.each([
    ['processed', ['processed'], {}],
    ['bounce', ['processed', 'bounce'], { type: 'bounce', status: '5.1.1' }],
    ['blocked', ['processed', 'bounce'], { type: 'blocked', status: '5.7.1' }],
    ['dropped', ['dropped'], { reason: 'Bounced Address' }],
    ['deferred', ['processed', 'deferred', 'delivered'], {}],
    ['spamreport', ['processed', 'delivered', 'spamreport'], {}],
    ['unsubscribe', ['processed', 'delivered', 'unsubscribe'], {}],
    ['open', ['processed', 'delivered', 'open'], {}],
  ])('tell of a recipient that ends as %s', async (outcome, events, last) => {
    simulator.setOutcomes({ [TO]: outcome });
    await send({});
    await simulator.idle();
    expect(batches().map(([event]) => event?.['event'])).toEqual(events);
    expect(batches().at(-1)?.[0]).toMatchObject(last);
  });

  test('of several recipients come together', async () => {
    simulator.setOutcomes({ 'a1@example.com': 'dropped' });
    await send({ personalizations: [{ to: addresses(3) }] });
    await simulator.idle();
    expect(batches().map((batch) => batch.map(({ event }) => event))).toEqual([
      ['processed', 'dropped', 'processed'],
      ['delivered', 'delivered'],
    ]);
  });
});

const batches = () => receiver.taken.map(({ body }): Record<string, unknown>[] => JSON.parse(body));

async function send(changes: object, key = 'SG.a.b') {
  const mail = {
    personalizations: [{ to: [{ email: TO }] }],
    from: { email: FROM, name: 'Shop' },
    subject: 'Hello',
    content: [{ type: 'text/plain', value: 'Hello' }, html('<p>Hello</p>')],
    ...changes,
  };
  const answer = await fetch(`${simulator.url}/v3/mail/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(mail),
  });
  return { status: answer.status, messageId: answer.headers.get('x-message-id'), body: await answer.text() };
}

async function state(): Promise<unknown> {
  return await (await fetch(`${simulator.url}/_control/state`)).json();
}

async function credentials(): Promise<{ eventWebhookPublicKey: string }> {
  return JSON.parse(await (await fetch(`${simulator.url}/_control/credentials`)).text());
}

function html(value: string) {
  return { type: 'text/html', value };
}

function addresses(count: number) {
  return Array.from({ length: count }, (_, index) => ({ email: `a${index}@example.com` }));
}

interface SignedEvents {
  readonly body: string;
  readonly signature: string;
  readonly timestamp: string;
}

/** By the official library, and by Node. */
function isVerified(key: string, { body, signature, timestamp }: SignedEvents): readonly boolean[] {
  const library = new EventWebhook();
  const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
  return [
    library.verifySignature(library.convertPublicKeyToECDSA(key), body, signature, timestamp),
    verify('sha256', Buffer.from(timestamp + body), publicKey, Buffer.from(signature, 'base64')),
  ];
}
