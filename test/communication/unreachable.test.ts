import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { startFcm } from '@rollcall/simulators/push/fcm.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import smpp, { type Pdu } from 'smpp';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, type CommunicationService, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const TOKEN = 'returned-mail-token';
const accountSid = `AC${'0'.repeat(31)}1`;
const stack = new AsyncDisposableStack();
/** By the recipient of the envelope: what came, or how it is refused. */
const received = new Map<string, string[]>();
const refusals = new Map<string, string>();
let twilio: Simulator;
let fcm: Simulator;
let communication: CommunicationService;
let shop: Caller;

beforeAll(async () => {
  const smtpPort = await startMailServer();
  twilio = stack.use(await startTwilio({ accountSid, authToken: 'right', retryDelaysMs: [] }));
  fcm = stack.use(await startFcm());
  const { serviceAccount } = (await (await fetch(`${fcm.url}/_control/credentials`)).json()) as {
    serviceAccount: Record<string, string>;
  };
  const providers = {
    email: {
      from: { address: 'shop@shop.example' },
      providers: [
        {
          name: 'mx',
          kind: 'smtp',
          host: '127.0.0.1',
          port: smtpPort,
          tls: 'none',
          bounceDomain: 'shop.example',
          notificationToken: TOKEN,
        },
      ],
    },
    sms: {
      providers: [
        {
          name: 'centre',
          kind: 'smpp',
          priority: 1,
          host: '127.0.0.1',
          port: await startCentre(),
          systemId: 'shop',
          password: 'right',
          sender: 'Acacia',
        },
        { name: 'twilio', kind: 'twilio', baseUrl: twilio.url, accountSid, authToken: 'right', sender: '+27600000001' },
      ],
      byCountry: { GB: ['centre'] },
    },
    push: {
      providers: [
        {
          name: 'fcm',
          kind: 'fcm',
          baseUrl: fcm.url,
          projectId: serviceAccount['project_id'],
          clientEmail: serviceAccount['client_email'],
          privateKey: serviceAccount['private_key'],
          tokenUri: serviceAccount['token_uri'],
        },
      ],
    },
  };
  communication = stack.use(
    await startCommunication({
      databaseUrl: stack.use(await createDatabase()).url,
      settings: { ...(await writeProviders(providers)), ROLLCALL_RETRY_BASE_SECONDS: '0.2' },
    }),
  );
  shop = await communication.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

async function startMailServer(): Promise<number> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onRcptTo({ address }, _session, answer) {
      const refusal = refusals.get(address);
      if (refusal === undefined) return answer();
      const [code = '', ...words] = refusal.split(' ');
      return answer(Object.assign(new Error(words.join(' ')), { responseCode: Number(code) }));
    },
    onData(stream, { envelope }, answer) {
      const chunks: Uint8Array[] = [];
      stream.on('data', (chunk: Uint8Array) => chunks.push(chunk));
      stream.on('end', () => {
        for (const { address } of envelope.rcptTo)
          received.getOrInsert(address, []).push(Buffer.concat(chunks).toString());
        answer();
      });
    },
  });
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  stack.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (listening.address() as AddressInfo).port;
}

/** A message centre that says of each message that it was delivered, before it answers. */
async function startCentre(): Promise<number> {
  const server = smpp.createServer((session) => {
    let taken = 0;
    session.on('error', () => session.destroy());
    session.on('bind_transceiver', (pdu: Pdu) => session.send(pdu.response()));
    session.on('unbind', (pdu: Pdu) => session.send(pdu.response()));
    session.on('submit_sm', (pdu: Pdu) => {
      taken += 1;
      session.deliver_sm(
        { esm_class: 4, receipted_message_id: `c${taken}`, message_state: 2 },
        ({ command_status }) => {
          if (command_status === 0) session.send(pdu.response({ message_id: `c${taken}` }));
        },
      );
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stack.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const waiting = { prefer: 'wait=20' };

async function statusOf(path: string, body: object): Promise<unknown> {
  const answer = await shop('POST', path, { body, headers: waiting });
  expect(answer).toMatchObject({ status: 202 });
  return answer.body?.['status'];
}

const newAddress = () => `ana-${randomBytes(4).toString('hex')}@example.com`;
const mail = (to: string, category: string) => statusOf('/emails', { to, subject: 'News', text: 'x', category });

async function reasonsOf(recipient: string): Promise<unknown> {
  const { body = {} } = await shop('GET', `/suppressions?recipient=${encodeURIComponent(recipient)}`);
  return (body['suppressions'] as { reason: string; messageId: string | null }[]).map(({ reason, messageId }) => [
    reason,
    messageId !== null,
  ]);
}

/** Of a mail in one part, without the breaks of quoted-printable. */
function bodyOf(mail: string): string {
  return mail.slice(mail.indexOf('\r\n\r\n') + 4).replaceAll(/=\r\n/g, '');
}

test('who unsubscribes by the header of a marketing mail still gets the others, until they subscribe again', async () => {
  const to = newAddress();
  expect(await mail(to, 'marketing')).toBe('sent');
  expect(await mail(to, 'transactional')).toBe('sent');
  const [marketing = '', transactional = ''] = received.get(to) ?? [];
  expect(transactional).not.toMatch(/^List-Unsubscribe/im);
  const unfolded = marketing.replaceAll(/\r\n[ \t]+/g, ' ');
  expect(unfolded).toMatch(/^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
  const [, path] = /^List-Unsubscribe: <https:\/\/gateway\.example(\/unsubscribe\/[\w-]+)>\r$/m.exec(unfolded) ?? [];
  const [, shown] = /^Unsubscribe: https:\/\/gateway\.example(\/unsubscribe\/[\w-]+)/m.exec(bodyOf(marketing)) ?? [];
  expect((await fetch(`${communication.service.url}${shown}`)).status).toBe(200);
  expect(bodyOf(transactional)).not.toContain('nsubscribe');
  const url = `${communication.service.url}${path}`;
  await fetch(url);
  expect(await mail(to, 'marketing')).toBe('sent');
  await fetch(url, { method: 'POST', body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) });
  expect(await reasonsOf(to)).toEqual([['unsubscribe', true]]);
  expect(await mail(to.toUpperCase(), 'marketing')).toBe('suppressed');
  expect(await mail(to, 'transactional')).toBe('sent');
  await fetch(url, { method: 'POST', body: new URLSearchParams({ subscribe: 'again' }) });
  expect(await mail(to, 'marketing')).toBe('sent');
  expect(received.get(to)).toHaveLength(5);
});

test('a marketing mail without a template says in its language how to unsubscribe', async () => {
  const to = newAddress();
  const body = { to, subject: 'Nuus', text: 'x', category: 'marketing', locale: 'af-ZA' };
  expect(await statusOf('/emails', body)).toBe('sent');
  expect(bodyOf(received.get(to)?.[0] ?? '')).toMatch(/^Teken uit: https:/m);
});

test('the link of the longest address fits into a line of a mail', async () => {
  const labels = Array.from({ length: 3 }, () => 'd'.repeat(60)).join('.');
  const to = `${'a'.repeat(60)}@${labels}.example`;
  expect(await mail(to, 'marketing')).toBe('sent');
  const lines = (received.get(to)?.[0] ?? '').split('\r\n').map((line) => Buffer.byteLength(line));
  expect(Math.max(...lines)).toBeLessThan(998);
});

test.each([
  ['550 5.1.1 No such user', 'failed', [['hard-bounce', true]]],
  ['550 5.2.2 Mailbox full', 'failed', []],
  ['550 No such user', 'failed', []],
  ['554 5.7.1 Blocked', 'queued', []],
  ['450 4.2.1 Try later', 'queued', []],
])('a server that says %s leaves the mail %s', async (refusal, status, reasons) => {
  const to = newAddress();
  refusals.set(to, refusal);
  const answer = await shop('POST', '/emails', { body: { to, subject: 's', text: 't' } });
  const path = `/messages/${String(answer.body?.['id'])}`;
  await expect.poll(async () => (await shop('GET', path)).body?.['attempts']).not.toEqual([]);
  await expect.poll(async () => (await shop('GET', path)).body?.['status']).toBe(status);
  await expect.poll(() => reasonsOf(to)).toEqual(reasons);
  refusals.delete(to);
  await shop('POST', `${path}/cancel`);
});

test('an address that bounced gets nothing more, until its subject says otherwise; then it may bounce again', async () => {
  const to = newAddress();
  refusals.set(to, '550 5.1.1 No such user');
  expect(await mail(to, 'transactional')).toBe('failed');
  await expect.poll(() => reasonsOf(to)).toEqual([['hard-bounce', true]]);
  expect(await mail(to, 'transactional')).toBe('suppressed');
  expect((await shop('DELETE', `/suppressions/${to}`)).status).toBe(204);
  expect(await mail(to, 'transactional')).toBe('failed');
  await expect.poll(() => reasonsOf(to)).toEqual([['hard-bounce', true]]);
});

test('who answered STOP gets no SMS at all, from this subject', async () => {
  const to = '+27821111111';
  twilio.setOutcomes({ [to]: '21610' });
  expect(await statusOf('/sms', { to, message: 'Hello' })).toBe('failed');
  await expect.poll(() => reasonsOf(to)).toEqual([['stop', true]]);
  await twilio.reset();
  expect(await statusOf('/sms', { to: '082 111 1111', message: 'Hello' })).toBe('suppressed');
  const other = await communication.callerOf('other');
  const answer = await other('POST', '/sms', { body: { to, message: 'Hello' }, headers: waiting });
  expect(answer.body?.['status']).toBe('sent');
});

test('a token that is gone gets nothing more until it is registered again; a payload that is wrong forgets no device', async () => {
  const deviceToken = `${randomBytes(16).toString('base64url')}:APA91b${randomBytes(100).toString('base64url')}`;
  const push = () => statusOf('/push', { deviceToken, title: 'Hello' });
  const register = async () => (await shop('PUT', `/devices/${deviceToken}`, { body: { platform: 'fcm' } })).status;
  expect(await register()).toBe(201);
  fcm.setOutcomes({ [deviceToken]: 'BAD_REQUEST' });
  expect(await push()).toBe('failed');
  expect(await register()).toBe(200);
  fcm.setOutcomes({ [deviceToken]: 'UNREGISTERED' });
  expect(await push()).toBe('failed');
  // Registered within the minute in which the answer may have been on its way.
  expect(await register()).toBe(200);
  const unknown = `${randomBytes(16).toString('base64url')}:APA91b${randomBytes(100).toString('base64url')}`;
  fcm.setOutcomes({ [unknown]: 'UNREGISTERED' });
  expect(await statusOf('/push', { deviceToken: unknown, title: 'Hello' })).toBe('failed');
  await expect.poll(() => statusOf('/push', { deviceToken: unknown, title: 'Hello' })).toBe('suppressed');
  await shop('PUT', `/devices/${unknown}`, { body: { platform: 'fcm' } });
  expect(await statusOf('/push', { deviceToken: unknown, title: 'Hello' })).toBe('failed');
});

const idOf = async (to: string) =>
  String((await shop('POST', '/emails', { body: { to, subject: 's', text: 't' }, headers: waiting })).body?.['id']);

/** As a mail server returns it. */
function returned(id: string, recipient: string, status: string): string {
  const parts = [
    'Content-Type: text/plain\n\nI could not deliver it.\n',
    `Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\nOriginal-Envelope-Id: ${id}\n\nFinal-Recipient: rfc822; ${recipient}\nAction: failed\nStatus: ${status}\n`,
  ];
  const head = 'To: x@shop.example\nMIME-Version: 1.0\nContent-Type: multipart/report; boundary=b\n\n';
  return `${head}${parts.map((part) => `--b\n${part}\n`).join('')}--b--\n`.replaceAll('\n', '\r\n');
}

async function giveBack(body: string, token = TOKEN): Promise<number> {
  const url = `${communication.service.url}/api/v1/notifications/mx?token=${token}`;
  return (await fetch(url, { method: 'POST', body, headers: { 'content-type': 'message/rfc822' } })).status;
}

test('mail that comes back later bounces: for good where there is no such address, and for nobody else', async () => {
  const [gone, full, victim] = [newAddress(), newAddress(), newAddress()];
  const [ofGone, ofFull] = [await idOf(gone), await idOf(full)];
  expect(await giveBack(returned(ofGone, gone, '5.1.1'), 'another-token-of-somebody')).toBe(401);
  expect(await giveBack('Subject: I am on holiday\r\n\r\nBack on Monday')).toBe(400);
  expect(await reasonsOf(gone)).toEqual([]);
  expect(await giveBack(returned(ofFull, victim, '5.1.1'))).toBe(204);
  expect(await giveBack(returned(ofGone, gone, '5.1.1'))).toBe(204);
  expect(await giveBack(returned(ofGone, gone, '5.1.1'))).toBe(204);
  expect(await giveBack(returned(ofFull, full, '4.2.2'))).toBe(204);
  for (const id of [ofGone, ofFull])
    await expect.poll(async () => (await shop('GET', `/messages/${id}`)).body?.['status']).toBe('bounced');
  expect(await reasonsOf(gone)).toEqual([['hard-bounce', true]]);
  expect(await reasonsOf(full)).toEqual([]);
  expect(await reasonsOf(victim)).toEqual([]);
});

test('a receipt of a message centre moves its message, also where it comes before the answer', async () => {
  const body = { to: '+447400123456', message: 'Hello' };
  const answer = await shop('POST', '/sms', { body, headers: waiting });
  expect(answer.status).toBe(202);
  const path = `/messages/${String(answer.body?.['id'])}`;
  await expect
    .poll(async () => (await shop('GET', path)).body)
    .toMatchObject({ status: 'delivered', provider: 'centre', attempts: [{ status: 'accepted' }] });
});

test('a mail whose recipient is refused for good bounces, although another got a copy', async () => {
  const [to, copy] = [newAddress(), newAddress()];
  refusals.set(to, '550 5.1.1 gone');
  const body = { to, subject: 'Copies', text: 'Good day', cc: [copy] };
  const sent = await shop('POST', '/emails', { body, headers: waiting });
  expect(sent.body).toMatchObject({ status: 'bounced', reason: 'address-unknown', detail: '550 5.1.1' });
  expect([received.get(to), received.get(copy)?.length]).toEqual([undefined, 1]);
  expect(await reasonsOf(to)).toEqual([['hard-bounce', true]]);
});

test('a recipient who is deferred gets the mail later, and who has a copy gets no other', async () => {
  const [to, copy, hidden] = [newAddress(), newAddress(), newAddress()];
  refusals.set(to, '450 4.2.1 Try later');
  const body = { to, subject: 'Copies', text: 'Good day', cc: [copy], bcc: [hidden] };
  const sent = await shop('POST', '/emails', { body, headers: waiting });
  expect(sent.body).toMatchObject({ status: 'queued', reason: 'not-taken', detail: '450 4.2.1' });
  refusals.delete(to);
  const path = `/messages/${String(sent.body?.['id'])}`;
  await expect.poll(async () => (await shop('GET', path)).body?.['status'], { timeout: 30_000 }).toBe('sent');
  expect([to, copy, hidden].map((address) => received.get(address)?.length)).toEqual([1, 1, 1]);
  expect((await shop('GET', path)).body).toMatchObject({ cc: [copy], bcc: [hidden] });
});

test('a mail that is taken, but not for all copies, says for whom it was not, and why', async () => {
  const [full, gone, wanted] = ['full@example.com', 'vanished@example.com', 'ada@example.com'];
  refusals.set(full, '552 5.2.2 full').set(gone, '550 5.1.1 gone');
  await shop('PUT', '/suppressions/no-more@example.com');
  const copies = { cc: [full, wanted, 'no-more@example.com'], bcc: [gone] };
  const body = { to: 'copies@example.com', subject: 'Copies', text: 'Good day', ...copies };
  const sent = await shop('POST', '/emails', { body, headers: { prefer: 'wait=20' } });
  expect(sent.body).toMatchObject({ status: 'sent', ...copies });
  const leftOut = sent.body?.['leftOut'] as readonly { readonly address: string }[];
  expect(leftOut.toSorted((a, b) => a.address.localeCompare(b.address))).toEqual([
    { address: full, reason: 'recipient-refused' },
    { address: 'no-more@example.com', reason: 'manual' },
    { address: gone, reason: 'address-unknown' },
  ]);
  expect(received.get(wanted)).toHaveLength(1);
});
