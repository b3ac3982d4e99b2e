import { startSendGrid } from '@rollcall/simulators/email/sendgrid.ts';
import { startFcm } from '@rollcall/simulators/push/fcm.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startBulkSms } from '@rollcall/simulators/sms/bulksms.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import {
  type Caller,
  type CommunicationService,
  codeOf,
  faultPaths,
  startCommunication,
} from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const stack = new AsyncDisposableStack();
const simulators: Simulator[] = [];
let service: CommunicationService;

beforeAll(async () => {
  const sendgrid = stack.use(await startSendGrid({ apiKey: 'key' }));
  const bulksms = stack.use(await startBulkSms({ tokenId: 'id', tokenSecret: 'secret' }));
  const fcm = stack.use(await startFcm({}));
  simulators.push(sendgrid, bulksms, fcm);
  const answer = await fetch(`${fcm.url}/_control/credentials`);
  const { serviceAccount } = (await answer.json()) as { serviceAccount: Record<string, string> };
  const providers = {
    email: {
      from: { address: 'shop@shop.example' },
      providers: [{ name: 'sendgrid', kind: 'sendgrid', baseUrl: sendgrid.url, apiKey: 'key' }],
    },
    sms: {
      providers: [
        {
          name: 'bulksms',
          kind: 'bulksms',
          baseUrl: bulksms.url,
          user: 'id',
          password: 'secret',
          notificationToken: 'token-of-notifications',
        },
      ],
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
  // Nothing that can be reached: limits are counted by this replica alone.
  const settings = { ...(await writeProviders(providers)), ROLLCALL_REDIS_URL: 'redis://127.0.0.1:1' };
  service = stack.use(await startCommunication({ databaseUrl: stack.use(await createDatabase()).url, settings }));
});

afterAll(() => stack.disposeAsync());

const mail = { to: 'lindiwe@example.com', subject: 'Your order', text: 'It is on its way' };
const sms = { to: '+27821234567', message: 'Good day' };
const push = { deviceToken: 'd'.repeat(40), title: 'Good day' };
const file = { filename: 'a.txt', contentType: 'text/plain', content: 'YQ==' };

type Fault = readonly [path: string, change: Readonly<Record<string, unknown>>];

const faults: Readonly<Record<string, readonly Fault[]>> = {
  '/emails': [
    ['to', { to: undefined }],
    ...[
      '',
      'ana',
      'a@x',
      'a@x.example, b@x.example',
      'Ana <a@x.example>',
      'a(comment)@x.example',
      '"a b"@x.example',
    ].map((to): Fault => ['to', { to }]),
    ...['a@x.example\r\nBcc: evil@y.example', 'a@x.example\u0000', 'a@x.example ', `${'a'.repeat(400)}@x.example`].map(
      (to): Fault => ['to', { to }],
    ),
    ['to', { to: ['a@x.example'] }],
    ['to', { to: { address: 'a@x.example', name: 'Ana' } }],
    ['subject', { subject: 'a\r\nBcc: evil@y.example' }],
    ['subject', { subject: '' }],
    ['subject', { subject: 'a'.repeat(256) }],
    ['text', { text: 'a\u0000b' }],
    ['text', { text: 7 }],
    ['html', { html: 'a'.repeat(1_000_001) }],
    ['cc/0', { cc: ['a@x.example\nb@x.example'] }],
    ['cc', { cc: Array.from({ length: 10_000 }, () => 'a@x.example') }],
    ['bcc/1', { bcc: ['a@x.example', 'b'] }],
    ['replyTo', { replyTo: 'a@x.example\r\nX-Evil: 1' }],
    ['replyTo', { replyTo: { name: 'Ana', address: 'a@x.example\r\nX-Evil: 1' } }],
    ['from', { from: 'somebody@bank.example' }],
    ['template', { template: '../etc/passwd' }],
    ['locale', { locale: '!!' }],
    ['', { variables: { name: 'Ana' } }],
    ['', { locale: 'en' }],
    ['', { variables: { name: 'Ana' }, locale: 'en', category: 'marketing' }],
    ['attachments/0/filename', { attachments: [{ ...file, filename: 'a\r\nb' }] }],
    ['attachments/0/contentType', { attachments: [{ ...file, contentType: 'text/plain\r\nX-Evil: 1' }] }],
    ['attachments/0/content', { attachments: [{ ...file, content: '!!!' }] }],
    ['attachments', { attachments: [{ ...file, content: Buffer.alloc(10 * 1024 * 1024 + 3).toString('base64') }] }],
    ['sendAt', { sendAt: 'tomorrow' }],
    ['sendAt', { sendAt: new Date(Date.now() - 3_600_000).toISOString() }],
    ['sendAt', { sendAt: new Date(Date.now() + 31 * 86_400_000).toISOString() }],
    ['category', { category: 'spam' }],
    ['metadata/a b', { metadata: { 'a b': 'x' } }],
    ['metadata/a', { metadata: { a: 1 } }],
    ['tags/0', { tags: ['a b'] }],
    ['headers', { headers: { 'X-Evil': '1' } }],
    ['', { text: undefined }],
    ['', { template: 'welcome' }],
  ],
  '/sms': [
    ['to', { to: '123' }],
    ['to', { to: '+27114471234' }],
    ['to', { to: '+27821234567,+27821234568' }],
    ['to', { to: 27_821_234_567 }],
    ['message', { message: '' }],
    ['message', { message: '  ' }],
    ['message', { message: 'a'.repeat(1531) }],
    ['message', { message: 'ê'.repeat(671) }],
    ['message', { message: 'a\u001bb' }],
    ['from', { from: 'Bank' }],
  ],
  '/push': [
    ['deviceToken', { deviceToken: 'short' }],
    ['deviceToken', { deviceToken: 'd\r\n'.repeat(20) }],
    ['platform', { platform: 'palm' }],
    ['title', { title: 7 }],
    ['', { title: undefined }],
    ['', { body: 'a'.repeat(4000), data: { a: 'b'.repeat(500) } }],
    ['data/a', { data: { a: { b: 1 } } }],
    ['data', { data: 'a' }],
  ],
};
const bodies: Readonly<Record<string, object>> = { '/emails': mail, '/sms': sms, '/push': push };

describe.each(Object.entries(faults))('%s', (path, each) => {
  let caller: Caller;

  beforeAll(async () => {
    caller = await service.callerOf(`hostile${path}`);
  });

  test.each(each.map(([field, change], index) => ({ field, change, index })))(
    'refuses what is wrong with $field ($index), stores nothing and sends nothing',
    async ({ field, change }) => {
      const answer = await caller('POST', path, { body: { ...bodies[path], ...change } });
      expect([answer.status, codeOf(answer)]).toEqual([400, 'INVALID_REQUEST']);
      expect(faultPaths(answer)).toContain(field === '' ? 'body' : `body/${field}`);
      expect((await caller('GET', '/messages')).body).toMatchObject({ total: 0 });
      expect(simulators.flatMap((simulator) => simulator.requests())).toEqual([]);
    },
  );
});

test('all faults of a body are named at once', async () => {
  const caller = await service.callerOf('all-at-once');
  const body = { to: 'a', subject: 'a\nb', cc: ['c'], sendAt: 'x', tags: ['a b'], unknown: 1 };
  const answer = await caller('POST', '/emails', { body });
  expect(faultPaths(answer)).toEqual(
    ['body', 'body/to', 'body/subject', 'body/cc/0', 'body/sendAt', 'body/tags/0', 'body/unknown'].sort(),
  );
});

test.each([
  ['/emails', ['body', 'body/to']],
  ['/push', ['body', 'body/deviceToken']],
] as const)('%s names what is missing of an empty body, also what is one of several', async (path, paths) => {
  const caller = await service.callerOf('empty');
  expect(faultPaths(await caller('POST', path, { body: {} }))).toEqual(paths);
});

test.each([
  ['/emails', { ...mail, category: 'marketing', cc: ['c@example.com'] }, ['body/cc', 'body/sendAt']],
  ['/push', { ...push, platform: 'apns', deviceToken: 'short' }, ['body/deviceToken', 'body/sendAt']],
] as const)('%s names what no schema finds all at once, too', async (path, body, paths) => {
  const caller = await service.callerOf('beyond-the-schema');
  const sendAt = new Date(Date.now() - 3_600_000).toISOString();
  expect(faultPaths(await caller('POST', path, { body: { ...body, sendAt } }))).toEqual(paths);
});

test('a message whose time has just passed is taken', async () => {
  const caller = await service.callerOf('just-passed');
  const body = { ...sms, sendAt: new Date(Date.now() - 60_000).toISOString() };
  expect((await caller('POST', '/sms', { body })).body).toMatchObject({ status: 'queued' });
});

test('without an identity, the scope, or a body that is JSON nothing is taken', async () => {
  const reader = await service.callerOf('reader', 'messages:read');
  const answer = await reader('POST', '/emails', { body: mail });
  expect([answer.status, codeOf(answer)]).toEqual([403, 'FORBIDDEN']);
  const nobody = await fetch(`${service.service.url}/api/v1/emails`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(mail),
  });
  expect(nobody.status).toBe(401);
  const caller = await service.callerOf('no-json');
  expect((await caller('POST', '/emails', { text: '{' })).status).toBe(400);
  expect((await caller('POST', '/sms', { text: JSON.stringify({ ...sms, message: 'a'.repeat(70_000) }) })).status).toBe(
    413,
  );
});

test('without Redis messages are taken, limits are counted, and health says so', async () => {
  const caller = await service.callerOf('no-redis');
  const answer = await caller('POST', '/push', { body: push, headers: { prefer: 'wait=20' } });
  expect(answer).toMatchObject({ status: 202, body: { channel: 'push', status: 'sent', provider: 'fcm' } });
  expect(answer.headers.get('x-ratelimit-remaining')).toBe('199');
  expect(answer.headers.get('preference-applied')).toBe('wait=20');
  const health = await caller('GET', '/health');
  expect(health).toMatchObject({
    status: 200,
    body: { status: 'healthy', database: 'connected', store: 'disconnected' },
  });
});
