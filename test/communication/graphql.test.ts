import { startFcm } from '@rollcall/simulators/push/fcm.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMailpit, MAILPIT_TIMEOUT_MS, type TestMailpit } from '../support/mailpit.ts';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, type CommunicationService, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const stack = new AsyncDisposableStack();
let mailpit: TestMailpit;
let service: CommunicationService;
let ana: Caller;

beforeAll(async () => {
  mailpit = stack.use(await createMailpit());
  const smtp = { name: 'post', kind: 'smtp', host: '127.0.0.1', port: mailpit.smtpPort, tls: 'none' };
  const email = {
    from: { address: 'shop@shop.example' },
    providers: [{ ...smtp, bounceDomain: 'shop.example' }],
  };
  const providers = { email, sms: { providers: [await smsProvider()] }, push: { providers: [await pushProvider()] } };
  service = stack.use(
    await startCommunication({
      databaseUrl: stack.use(await createDatabase()).url,
      settings: await writeProviders(providers),
    }),
  );
  ana = await service.callerOf('ana');
}, MAILPIT_TIMEOUT_MS);

afterAll(() => stack.disposeAsync());

async function smsProvider() {
  const account = { accountSid: `AC${'0'.repeat(31)}1`, authToken: 'right' };
  const twilio = stack.use(await startTwilio({ ...account, retryDelaysMs: [] }));
  return { name: 'twilio', kind: 'twilio', baseUrl: twilio.url, ...account, sender: '+27600000001' };
}

async function pushProvider() {
  const { url } = stack.use(await startFcm());
  const answer = await fetch(`${url}/_control/credentials`);
  const { serviceAccount } = (await answer.json()) as { serviceAccount: Record<string, string> };
  return {
    name: 'fcm',
    kind: 'fcm',
    baseUrl: url,
    projectId: serviceAccount['project_id'],
    clientEmail: serviceAccount['client_email'],
    privateKey: serviceAccount['private_key'],
    tokenUri: serviceAccount['token_uri'],
  };
}

const SEND = 'mutation Send($input: SendEmailInput!) { sendEmail(input: $input) { id status provider sentAt } }';
const READ = 'query Read($id: ID!) { message(id: $id) { id channel status to } }';
const input = { to: 'lindiwe@example.com', subject: 'Your order', text: 'It is on its way' };

interface Result {
  readonly data?: Record<string, Record<string, string | null> | null> | null;
  readonly errors?: readonly {
    readonly path?: readonly string[];
    readonly extensions: { code: string; details: object };
  }[];
}

/** Variables of the document, and headers of the request. */
type Variables = Readonly<Record<string, unknown>> & { readonly headers?: Readonly<Record<string, string>> };

async function ask(caller: Caller, query: string, { headers = {}, ...variables }: Variables): Promise<Result> {
  const { body } = await caller('POST', '/../graphql', { body: { query, variables }, headers });
  return body as Result;
}

async function sent(variables: object, headers = {}): Promise<string> {
  const { data } = await ask(ana, SEND, { input: variables, headers });
  return data?.['sendEmail']?.['id'] ?? '';
}

test('sends a mail, and shows it to who sent it alone', async () => {
  const id = await sent({ ...input, to: 'graphql@example.com' });
  await expect
    .poll(async () => (await ask(ana, READ, { id })).data)
    .toEqual({ message: { id, channel: 'email', status: 'sent', to: 'graphql@example.com' } });
  const WHOLE = `query Whole($id: ID!) {
    message(id: $id) {
      cc bcc leftOut { address reason } category template { name version locale } segments encoding tags metadata
      detail sendAt nextAttemptAt attempts { number provider status reason detail startedAt endedAt } events { type at }
    }
  }`;
  const { body } = await ana('GET', `/messages/${id}`);
  const { cc, bcc, category, tags, metadata, detail, sendAt, nextAttemptAt, attempts, events } = body ?? {};
  const kept = { cc, bcc, category, tags, metadata, detail, sendAt, nextAttemptAt, attempts, events };
  const none = { leftOut: null, template: null, segments: null, encoding: null };
  expect(attempts).toHaveLength(1);
  expect(await ask(ana, WHOLE, { id })).toEqual({ data: { message: { ...none, ...kept } } });
  expect(await ask(await service.callerOf('bea'), READ, { id })).toEqual({ data: { message: null } });
  expect(await ask(ana, READ, { id: 'none' })).toEqual({ data: { message: null } });
});

const SEND_SMS = 'mutation S($input: SendSMSInput!) { sendSMS(input: $input) { id status provider sentAt } }';
const SEND_PUSH = 'mutation P($input: SendPushInput!) { sendPush(input: $input) { id status sentAt } }';

test('sends an SMS and a push message, with the fields of the contract', async () => {
  const sms = { to: '+27821234567', message: 'Good day' };
  const push = { deviceToken: 'd'.repeat(40), title: 'Good day', body: 'Your parcel is here', data: { parcel: 7 } };
  const accepted = [await ask(ana, SEND_SMS, { input: sms }), await ask(ana, SEND_PUSH, { input: push })];
  const waits = { id: expect.any(String), status: 'queued', sentAt: null };
  expect(accepted.map(({ data }) => data)).toEqual([{ sendSMS: { ...waits, provider: null } }, { sendPush: waits }]);
  for (const { data } of accepted) {
    const id = data?.['sendSMS']?.['id'] ?? data?.['sendPush']?.['id'];
    await expect.poll(async () => (await ask(ana, READ, { id })).data?.['message']?.['status']).toBe('sent');
  }
});

test('a mutation counts as the call over REST does', async () => {
  const caller = await service.callerOf('counted');
  const body = { to: '+27821234567', message: 'Good day', sendAt: new Date(Date.now() + 3_600_000).toISOString() };
  const overRest = await Promise.all(Array.from({ length: 30 }, () => caller('POST', '/sms', { body })));
  expect(new Set(overRest.map(({ status }) => status))).toEqual(new Set([202]));
  const mutations = await Promise.all(Array.from({ length: 22 }, () => ask(caller, SEND_SMS, { input: body })));
  const refused = mutations.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions.code));
  expect(refused).toEqual(['RATE_LIMITED', 'RATE_LIMITED']);
  expect((await caller('POST', '/sms', { body })).status).toBe(429);
});

test('lists messages by what they are, to their owner alone', async () => {
  const lister = await service.callerOf('lister');
  const LIST = `query List($to: String, $tag: String, $limit: Int) {
    messages(to: $to, tag: $tag, limit: $limit) { total nextCursor messages { to status } }
  }`;
  for (const to of ['one@example.com', 'two@example.com'])
    await ask(lister, SEND, { input: { ...input, to, tags: ['spring'], sendAt: new Date(Date.now() + 3_600_000) } });
  expect((await ask(lister, LIST, { tag: 'spring', limit: 1 })).data).toEqual({
    messages: {
      total: 2,
      nextCursor: expect.any(String),
      messages: [{ to: 'two@example.com', status: 'scheduled' }],
    },
  });
  expect((await ask(lister, LIST, { to: 'One@example.com' })).data).toMatchObject({ messages: { total: 1 } });
  expect((await ask(ana, LIST, { tag: 'spring' })).data).toMatchObject({ messages: { total: 0 } });
  expect((await ask(lister, LIST, { limit: 0, tag: 'a b' })).errors?.[0]?.extensions.code).toBe('INVALID_REQUEST');
});

test('names every fault of an input, as REST does', async () => {
  const answer = await ask(ana, SEND, { input: { to: 'a@b, c@d', subject: 'x\r\nBcc: e@f', text: 'x' } });
  expect(answer).toMatchObject({
    data: null,
    errors: [{ path: ['sendEmail'], extensions: { code: 'INVALID_REQUEST', details: { fields: expect.any(Array) } } }],
  });
  expect(
    JSON.stringify(answer.errors)
      .match(/input\/\w+/g)
      ?.sort(),
  ).toEqual(expect.arrayContaining(['input/subject', 'input/to']));
});

test('refuses a template that is not there with the code of REST', async () => {
  const answer = await ask(ana, SEND, { input: { to: input.to, template: 'none' } });
  expect(answer.errors?.[0]?.extensions.code).toBe('TEMPLATE_NOT_FOUND');
});

test('calls with one key send one mail, by whichever door they come', async () => {
  const first = await sent({ ...input, idempotencyKey: 'one' });
  expect(await sent(input, { 'idempotency-key': 'one' })).toBe(first);
  const overRest = await ana('POST', '/emails', { body: input, headers: { 'idempotency-key': 'one' } });
  expect(overRest).toMatchObject({ status: 202, body: { id: first } });
});

test('needs the scope of the field', async () => {
  const reader = await service.callerOf('ana', 'messages:read');
  const answer = await ask(reader, SEND, { input });
  expect(answer.errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN', details: { missing: ['messages:send'] } });
});

test('is a subgraph of federation, whose entities others refer to', async () => {
  const { body } = await ana('POST', '/../graphql', { body: { query: '{ _service { sdl } }' } });
  expect(body).toMatchObject({ data: { _service: { sdl: expect.stringContaining('@key(fields: "id")') } } });
  const id = await sent(input);
  const representations = [{ __typename: 'Message', id }];
  const entities =
    'query E($representations: [_Any!]!) { _entities(representations: $representations) { ... on Message { to } } }';
  expect(await ask(ana, entities, { representations })).toEqual({ data: { _entities: [{ to: input.to }] } });
});
