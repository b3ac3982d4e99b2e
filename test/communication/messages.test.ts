import { setTimeout as delay } from 'node:timers/promises';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createMailpit, MAILPIT_TIMEOUT_MS, type TestMailpit } from '../support/mailpit.ts';
import { createDatabase } from '../support/postgres.ts';
import type { Answer } from '../support/replica.ts';
import {
  type Caller,
  type CommunicationService,
  codeOf,
  faultPaths,
  startCommunication,
} from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const stack = new AsyncDisposableStack();
let mailpit: TestMailpit;
let twilio: Simulator;
let service: CommunicationService;
let ana: Caller;

const accountSid = `AC${'0'.repeat(31)}1`;

beforeAll(async () => {
  mailpit = stack.use(await createMailpit());
  twilio = stack.use(await startTwilio({ accountSid, authToken: 'right', retryDelaysMs: [] }));
  const providers = {
    email: {
      from: { address: 'shop@shop.example', name: 'Acacia' },
      providers: [
        {
          name: 'mailpit',
          kind: 'smtp',
          host: '127.0.0.1',
          port: mailpit.smtpPort,
          tls: 'none',
          bounceDomain: 'shop.example',
        },
      ],
    },
    sms: {
      providers: [
        { name: 'twilio', kind: 'twilio', baseUrl: twilio.url, accountSid, authToken: 'right', sender: '+27600000001' },
      ],
    },
  };
  service = stack.use(
    await startCommunication({
      databaseUrl: stack.use(await createDatabase()).url,
      settings: { ...(await writeProviders(providers)), ROLLCALL_RETRY_BASE_SECONDS: '0.2' },
    }),
  );
  ana = await service.callerOf('ana');
}, MAILPIT_TIMEOUT_MS);

afterAll(() => stack.disposeAsync());

const mail = { to: 'lindiwe@example.com', subject: 'Your order', text: 'It is on its way' };
const waiting = { prefer: 'wait=20' };

/** Of a message that an answer shows. */
function pathOf(body: Answer['body']): string {
  return `/messages/${String(body?.['id'])}`;
}

async function received(id: unknown) {
  return (await mailpit.messages()).filter(({ MessageID }) => MessageID.startsWith(String(id)));
}

describe('a mail', () => {
  test('is accepted, sent, and shown with its attempt and its history', async () => {
    const accepted = await ana('POST', '/emails', { body: { ...mail, tags: ['orders'], metadata: { order: '7' } } });
    expect(accepted.status).toBe(202);
    expect(accepted.headers.get('x-ratelimit-limit')).toBe('100');
    const id = String(accepted.body?.['id']);
    expect(accepted.headers.get('location')).toBe(`messages/${id}`);
    expect(accepted.body).toMatchObject({
      channel: 'email',
      status: 'queued',
      to: mail.to,
      provider: null,
      sentAt: null,
    });
    await expect
      .poll(async () => (await ana('GET', `/messages/${id}`)).body)
      .toMatchObject({
        id,
        status: 'sent',
        provider: 'mailpit',
        metadata: { order: '7' },
        tags: ['orders'],
        attempts: [{ number: 1, provider: 'mailpit', status: 'accepted', reason: null }],
        events: [{ type: 'message.queued' }, { type: 'message.sending' }, { type: 'message.sent' }],
      });
    expect(await received(id)).toMatchObject([
      { Subject: mail.subject, From: { Address: 'shop@shop.example', Name: 'Acacia' }, To: [{ Address: mail.to }] },
    ]);
  });

  test('is made of a template, in which values arrive as the letters that they are', async () => {
    const variables = { company: 'Acacia', name: '<img src=x> {{7*7}}', url: 'https://shop.example/' };
    const body = { to: mail.to, template: 'welcome', variables };
    // A machine that stands still has no mail made in time.
    const id = await vi.waitFor(
      async () => {
        const accepted = await ana('POST', '/emails', { body, headers: waiting });
        expect(accepted).toMatchObject({ status: 202, body: { template: { name: 'welcome', version: 0 } } });
        return accepted.body?.['id'];
      },
      { timeout: 30_000, interval: 500 },
    );
    await expect.poll(async () => (await ana('GET', `/messages/${String(id)}`)).body?.['status']).toBe('sent');
    const [mailed] = await received(id);
    const raw = await mailpit.raw(mailed?.ID ?? '');
    expect(raw).toContain('&lt;img src=3Dx');
    expect(raw).not.toContain('<img src=3Dx');
  });

  test('of a template that is not there, or without its variables, is refused with 422', async () => {
    const none = await ana('POST', '/emails', { body: { to: mail.to, template: 'nobody-has-it' } });
    expect([none.status, codeOf(none)]).toEqual([422, 'TEMPLATE_NOT_FOUND']);
    const missing = await ana('POST', '/emails', { body: { to: mail.to, template: 'welcome', variables: {} } });
    expect([missing.status, codeOf(missing)]).toEqual([422, 'TEMPLATE_VARIABLES']);
    expect(faultPaths(missing)).toContain('body/variables/company');
  });

  test('goes to those of the envelope alone, with copies, attachments and an address for answers', async () => {
    const attachments = [
      { filename: 'a.txt', contentType: 'text/plain', content: Buffer.from('attached').toString('base64') },
    ];
    const copies = { cc: ['thabo@example.com'], bcc: ['books@example.com'], replyTo: 'help@shop.example' };
    const body = { ...mail, ...copies, attachments, html: '<p>Good <b>day</b></p>' };
    const accepted = await ana('POST', '/emails', { body, headers: waiting });
    const [mailed] = await received(accepted.body?.['id']);
    expect(mailed).toMatchObject({
      To: [{ Address: mail.to }],
      Cc: [{ Address: 'thabo@example.com' }],
      Bcc: [{ Address: 'books@example.com' }],
    });
    const raw = await mailpit.raw(mailed?.ID ?? '');
    expect(raw).toContain('Reply-To: help@shop.example');
    expect(raw).toContain('filename=a.txt');
  });
});

test('an address that is named twice, in whatever capitals, gets one copy', async () => {
  const copies = { cc: ['Lindiwe@example.com', 'thabo@example.com'], bcc: ['THABO@example.com', 'b@example.com'] };
  const accepted = await ana('POST', '/emails', { body: { ...mail, ...copies }, headers: waiting });
  const [mailed] = await received(accepted.body?.['id']);
  expect(mailed).toMatchObject({
    To: [{ Address: mail.to }],
    Cc: [{ Address: 'thabo@example.com' }],
    Bcc: [{ Address: 'b@example.com' }],
  });
});

test('who wants no copy gets none, and the message says who that is and why', async () => {
  await ana('PUT', '/suppressions/no-more@example.com');
  const copies = { cc: ['no-more@example.com', 'thabo@example.com'], bcc: ['books@example.com'] };
  const body = { ...mail, subject: 'Left out', ...copies };
  const accepted = await ana('POST', '/emails', { body, headers: waiting });
  const leftOut = [{ address: 'no-more@example.com', reason: 'manual' }];
  expect(accepted.body).toMatchObject({ status: 'sent', ...copies, leftOut });
  const [sent] = (await mailpit.messages()).filter(({ Subject }) => Subject === 'Left out');
  expect(sent).toMatchObject({ Cc: [{ Address: 'thabo@example.com' }], Bcc: [{ Address: 'books@example.com' }] });
});

test('a marketing mail has no copies, as its link to unsubscribe is of one recipient', async () => {
  const body = { ...mail, category: 'marketing', cc: ['a@example.com'], bcc: ['b@example.com'] };
  const answer = await ana('POST', '/emails', { body });
  expect([answer.status, faultPaths(answer)]).toEqual([400, ['body/bcc', 'body/cc']]);
  expect((await ana('POST', '/emails', { body: { ...body, cc: [], bcc: [] } })).status).toBe(202);
});

test('HTML that cannot be made a text in time is refused soon, and is taken with one', async () => {
  const html = '<b>'.repeat(300_000);
  const startedMs = performance.now();
  const answer = await ana('POST', '/emails', { body: { to: mail.to, subject: mail.subject, html } });
  expect([answer.status, faultPaths(answer)]).toEqual([400, ['body/html']]);
  expect(performance.now() - startedMs).toBeLessThan(20_000);
  // Not sent: the mail server of the tests reads it for long, too.
  const sendAt = new Date(Date.now() + 86_400_000).toISOString();
  expect((await ana('POST', '/emails', { body: { ...mail, html, sendAt } })).status).toBe(202);
});

const attached = (bytes: number) => [
  { filename: 'a.bin', contentType: 'application/octet-stream', content: Buffer.alloc(bytes, 7).toString('base64') },
];

test('attachments of 10 MiB are sent, and one byte more is refused', async () => {
  const most = 10 * 1024 * 1024;
  const accepted = await ana('POST', '/emails', { body: { ...mail, attachments: attached(most) }, headers: waiting });
  expect(accepted.body).toMatchObject({ status: 'sent' });
  const refused = await ana('POST', '/emails', { body: { ...mail, attachments: attached(most + 1) } });
  expect([refused.status, faultPaths(refused)]).toEqual([400, ['body/attachments']]);
});

describe('one effect for each key', () => {
  test('fifty equal calls at a time are one message, and all are told of it', async () => {
    const headers = { 'idempotency-key': 'fifty' };
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => ana('POST', '/emails', { body: { ...mail, subject: 'Once' }, headers })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    expect(new Set(answers.map(({ body }) => body?.['id'])).size).toBe(1);
    await expect.poll(async () => (await ana('GET', pathOf(answers[0]?.body))).body?.['status']).toBe('sent');
    expect((await mailpit.messages()).filter(({ Subject }) => Subject === 'Once')).toHaveLength(1);
  });

  test('a repetition tells how the message is by now', async () => {
    const headers = { 'idempotency-key': 'by-now' };
    const first = await ana('POST', '/emails', { body: mail, headers });
    expect(first.body).toMatchObject({ status: 'queued', sentAt: null });
    await expect.poll(async () => (await ana('GET', pathOf(first.body))).body?.['status']).toBe('sent');
    const again = await ana('POST', '/emails', { body: mail, headers });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.body).toMatchObject({ status: 'sent', provider: expect.any(String), sentAt: expect.any(String) });
  });

  test('another body with the key is refused', async () => {
    const headers = { 'idempotency-key': 'another' };
    await ana('POST', '/emails', { body: mail, headers });
    const second = await ana('POST', '/emails', { body: { ...mail, subject: 'Another' }, headers });
    expect([second.status, codeOf(second)]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  });
});

describe('an SMS', () => {
  test('goes to the number in the form of E.164, and says its segments', async () => {
    const body = { to: '082 123 4567', message: 'Your code is 1234 ê' };
    const accepted = await ana('POST', '/sms', { body, headers: waiting });
    expect(accepted).toMatchObject({
      status: 202,
      body: { status: 'sent', provider: 'twilio', to: '+27821234567', segments: 1, encoding: 'UCS-2' },
    });
  });

  test('that the provider refuses for its recipient fails, with the reason', async () => {
    twilio.setOutcomes({ '+27821234568': '21614' });
    const accepted = await ana('POST', '/sms', { body: { to: '+27821234568', message: 'Good day' }, headers: waiting });
    expect(accepted.body).toMatchObject({ status: 'failed', reason: 'recipient-refused', detail: 'twilio 21614' });
  });
});

describe('a message of another subject', () => {
  test('is not there, whatever the verb', async () => {
    const { body } = await ana('POST', '/emails', {
      body: { ...mail, sendAt: new Date(Date.now() + 60_000).toISOString() },
    });
    const thabo = await service.callerOf('thabo');
    const path = pathOf(body);
    const answers = await Promise.all([
      thabo('GET', path),
      thabo('POST', `${path}/cancel`),
      thabo('POST', `${path}/retry`),
      thabo('GET', '/messages/none'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    const admin = await service.callerOf('admin', 'messages:read messages:admin');
    expect((await admin('GET', path)).status).toBe(200);
    expect((await thabo('GET', '/messages')).body).toMatchObject({ messages: [], total: 0 });
  });
});

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

describe('what is scheduled', () => {
  test('can be sent sooner, and never twice', async () => {
    const { body } = await ana('POST', '/emails', { body: { ...mail, subject: 'Sooner', sendAt: inMs(3_600_000) } });
    const path = `/messages/${String(body?.['id'])}`;
    const bob = await service.callerOf('bob');
    expect((await bob('PATCH', path, { body: { sendAt: inMs(0) } })).status).toBe(404);
    const sooner = inMs(4000);
    const put = await Promise.all(Array.from({ length: 5 }, () => ana('PATCH', path, { body: { sendAt: sooner } })));
    for (const answer of put) expect(answer).toMatchObject({ status: 200, body: { sendAt: sooner } });
    await expect.poll(async () => (await ana('GET', path)).body?.['status'], { timeout: 20_000 }).toBe('sent');
    const late = await ana('PATCH', path, { body: { sendAt: inMs(60_000) } });
    expect([late.status, codeOf(late), late.body]).toMatchObject([
      409,
      'CONFLICT',
      { error: { details: { status: 'sent' } } },
    ]);
    expect((await ana('GET', path)).body?.['attempts']).toHaveLength(1);
  });

  test('can be put off in the moment in which it is due: then it is not sent, or the call is refused', async () => {
    // A third of what one subject may send within a minute: the tests after it have their own share.
    const off = await service.callerOf('off');
    const sendAt = inMs(700);
    const sent = await Promise.all(
      Array.from({ length: 30 }, () => off('POST', '/emails', { body: { ...mail, subject: 'Off', sendAt } })),
    );
    const later = inMs(3_600_000);
    const outcomes = await Promise.all(
      sent.map(async ({ body }, index) => {
        const path = `/messages/${String(body?.['id'])}`;
        await delay(Math.max(0, Date.parse(sendAt) - Date.now()) + index * 10);
        return { path, status: (await off('PATCH', path, { body: { sendAt: later } })).status };
      }),
    );
    // Once those are sent that were refused, what was put off would be, too.
    const refused = outcomes.filter(({ status }) => status !== 200);
    const states = () => Promise.all(refused.map(async ({ path }) => (await off('GET', path)).body?.['status']));
    await expect.poll(states, { timeout: 30_000, interval: 500 }).toEqual(refused.map(() => 'sent'));
    for (const { path, status } of outcomes) {
      const { body } = await off('GET', path);
      const isPutOff = body?.['status'] === 'scheduled' && body['sendAt'] === later;
      // What was put off was never begun.
      expect([isPutOff, isPutOff && body['attempts']]).toEqual(status === 200 ? [true, []] : [false, false]);
    }
  });

  test.each([
    [{}, ['body/sendAt']],
    [{ sendAt: 'tomorrow', to: 'x@example.com' }, ['body/sendAt', 'body/to']],
    [{ sendAt: null }, ['body/sendAt']],
    [{ sendAt: '2020-01-01T00:00:00Z' }, ['body/sendAt']],
  ])('is not put off by %j', async (body, paths) => {
    const made = await ana('POST', '/emails', { body: { ...mail, sendAt: inMs(3_600_000) } });
    const answer = await ana('PATCH', `/messages/${String(made.body?.['id'])}`, { body });
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  test('can be cancelled, once and again, and is not sent', async () => {
    const sendAt = inMs(60_000);
    const { body } = await ana('POST', '/emails', { body: { ...mail, sendAt } });
    expect(body).toMatchObject({ status: 'scheduled', sendAt });
    const path = pathOf(body);
    expect((await ana('POST', `${path}/cancel`)).body).toMatchObject({ status: 'cancelled' });
    expect((await ana('POST', `${path}/cancel`)).status).toBe(200);
    const retried = await ana('POST', `${path}/retry`);
    expect([retried.status, codeOf(retried)]).toEqual([409, 'CONFLICT']);
  });

  test('leaves when its time has come', async () => {
    const sendAt = new Date(Date.now() + 1500).toISOString();
    const { body } = await ana('POST', '/emails', { body: { ...mail, sendAt } });
    const path = pathOf(body);
    await expect.poll(async () => (await ana('GET', path)).body).toMatchObject({ status: 'sent' });
    const shown = (await ana('GET', path)).body;
    expect(Date.parse(String(shown?.['sentAt']))).toBeGreaterThanOrEqual(Date.parse(sendAt));
    expect((await ana('POST', `${path}/cancel`)).status).toBe(409);
  });
});

test('messages are found by recipient, state, channel, tag and template', async () => {
  const nomsa = await service.callerOf('nomsa');
  const body = { ...mail, to: 'Nomsa@example.com', tags: ['found'] };
  const { body: sent } = await nomsa('POST', '/emails', { body, headers: waiting });
  await nomsa('POST', '/sms', { body: { to: '+27821234567', message: 'Good day' }, headers: waiting });
  const idsOf = async (query: string) => {
    const { body: list } = await nomsa('GET', `/messages?${query}`);
    return (list as { messages: { id: string }[] }).messages.map(({ id }) => id);
  };
  const one = [sent?.['id']];
  expect(await idsOf('to=nomsa@EXAMPLE.com')).toEqual(one);
  expect(await idsOf('tag=found')).toEqual(one);
  expect(await idsOf('channel=email&status=sent')).toEqual(one);
  expect(await idsOf('template=welcome')).toEqual([]);
  expect(await idsOf('limit=10')).toHaveLength(2);
});

test('the limit of a subject and an operation is told, and refuses with 429', async () => {
  const busy = await service.callerOf('busy');
  const body = { to: '+27821234567', message: 'Good day', sendAt: new Date(Date.now() + 3_600_000).toISOString() };
  const answers = await Promise.all(Array.from({ length: 52 }, () => busy('POST', '/sms', { body })));
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(50);
  const refused = answers.find(({ status }) => status === 429);
  expect(refused && codeOf(refused)).toBe('RATE_LIMITED');
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await busy('POST', '/emails', { body: { ...mail, sendAt: body.sendAt } })).status).toBe(202);
});

test('providers are shown with their health, and without secrets', async () => {
  const { body } = await ana('GET', '/providers');
  expect(body).toMatchObject({
    providers: [{ name: 'mailpit', status: 'available', lastError: null, nextTryAt: null }, { name: 'twilio' }],
  });
  expect(JSON.stringify(body)).not.toContain('right');
});

test('a channel without a provider answers 503', async () => {
  const answer = await ana('POST', '/push', { body: { deviceToken: 'x'.repeat(30), title: 'Good day' } });
  expect([answer.status, codeOf(answer)]).toEqual([503, 'NO_PROVIDER']);
});
