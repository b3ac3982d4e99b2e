import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json, text } from 'node:stream/consumers';
import { systemClock } from '@rollcall/platform/clock.ts';
import { jwtVerify } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { OutgoingPush } from '../domain/ports.ts';
import { createFcm } from './fcm.ts';
import { createProviderAgent } from './http-call.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const dispatcher = createProviderAgent();
const { signal } = new AbortController();

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfter?: string;
}

/** Google's two servers as one, whose answers a test chooses: nothing of others plays them. */
let server: Server;
let url: string;
let answer: Answer;
let tokensGiven = 0;
let assertions: string[] = [];
let requests: { readonly authorization: string | undefined; readonly body: unknown }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    void (async () => {
      if (request.url === '/token') {
        const form = new URLSearchParams(await text(request));
        assertions.push(form.get('assertion') ?? '');
        tokensGiven += 1;
        response.end(JSON.stringify({ access_token: `token-${tokensGiven}`, expires_in: 3599 }));
        return;
      }
      requests.push({ authorization: request.headers.authorization, body: await json(request) });
      response.statusCode = answer.status;
      if (answer.retryAfter !== undefined) response.setHeader('retry-after', answer.retryAfter);
      response.end(JSON.stringify(answer.body));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  tokensGiven = 0;
  assertions = [];
  requests = [];
  answer = { status: 200, body: { name: 'projects/p/messages/1' } };
});

afterAll(async () => {
  await dispatcher.close();
  server.close();
});

function fcm(clock = systemClock) {
  const account = {
    clientEmail: 'rollcall@p.iam.example',
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    tokenUri: `${url}/token`,
  };
  return createFcm({ baseUrl: new URL(url), timeoutMs: 15_000, projectId: 'p', account }, { dispatcher, clock });
}

const push: OutgoingPush = {
  channel: 'push',
  id: '0191f0a0-0000-7000-8000-000000000001',
  deduplicationId: 1,
  target: { platform: 'fcm', token: 'device-token' },
  title: 'Hello',
  body: 'Your parcel is here',
  data: { parcel: '7' },
};

test('a message goes to the device, with a token that the service account got', async () => {
  expect(await fcm().send(push, signal)).toEqual({ outcome: 'accepted', providerId: 'projects/p/messages/1' });
  expect(requests).toEqual([
    {
      authorization: 'Bearer token-1',
      body: {
        message: {
          token: 'device-token',
          notification: { title: 'Hello', body: 'Your parcel is here' },
          data: { parcel: '7' },
          android: { priority: 'HIGH' },
        },
      },
    },
  ]);
  const { payload } = await jwtVerify(assertions[0] ?? '', publicKey, {
    algorithms: ['RS256'],
    audience: `${url}/token`,
  });
  expect(payload).toMatchObject({
    iss: 'rollcall@p.iam.example',
    scope: 'https://www.googleapis.com/auth/firebase.messaging',
  });
});

test('a token is used until shortly before it ends, and no longer once it is refused', async () => {
  let nowMs = 0;
  const provider = fcm({ ...systemClock, monotonicMs: () => nowMs });
  await provider.send(push, signal);
  nowMs = 3599_000 - 300_001;
  await provider.send(push, signal);
  expect(tokensGiven).toBe(1);
  nowMs += 2;
  answer = { status: 401, body: {} };
  expect(await provider.send(push, signal)).toMatchObject({ outcome: 'refused', cause: 'credentials' });
  expect(tokensGiven).toBe(2);
  await provider.send(push, signal);
  expect(tokensGiven).toBe(3);
});

test('messages that need a token at the same time have the same one', async () => {
  const provider = fcm();
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => provider.send(push, signal)));
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['accepted']));
  expect(tokensGiven).toBe(1);
});

const fcmError = (errorCode: string) => ({ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode });
const badRequest = (field: string) => ({
  '@type': 'type.googleapis.com/google.rpc.BadRequest',
  fieldViolations: [{ field, description: 'x' }],
});
const gone = { outcome: 'refused', cause: 'recipient', suppress: { kind: 'token-gone' } };
const content = { outcome: 'refused', cause: 'content', reason: 'INVALID_ARGUMENT' };

test.each([
  { status: 404, details: [fcmError('UNREGISTERED')], outcome: { ...gone, reason: 'UNREGISTERED' } },
  { status: 403, details: [fcmError('SENDER_ID_MISMATCH')], outcome: { ...gone, reason: 'SENDER_ID_MISMATCH' } },
  {
    status: 400,
    details: [fcmError('INVALID_ARGUMENT'), badRequest('message.token')],
    outcome: { ...gone, reason: 'INVALID_ARGUMENT' },
  },
  // A payload that is too large must not cost a device.
  { status: 400, details: [fcmError('INVALID_ARGUMENT')], outcome: content },
  { status: 400, details: [fcmError('INVALID_ARGUMENT'), badRequest('message.data')], outcome: content },
  {
    status: 400,
    details: [badRequest('message.token')],
    outcome: { outcome: 'refused', cause: 'content', reason: '400' },
  },
  { status: 404, details: [], outcome: { outcome: 'refused', cause: 'content', reason: '404' } },
  {
    status: 401,
    details: [fcmError('THIRD_PARTY_AUTH_ERROR')],
    outcome: { outcome: 'refused', cause: 'credentials', reason: 'THIRD_PARTY_AUTH_ERROR' },
  },
  {
    status: 429,
    details: [fcmError('QUOTA_EXCEEDED')],
    outcome: { outcome: 'failed', reason: '429', retryAfterMs: 60_000 },
  },
  {
    status: 503,
    details: [fcmError('UNAVAILABLE')],
    retryAfter: '5',
    outcome: { outcome: 'failed', reason: '503', retryAfterMs: 5000 },
  },
  { status: 500, details: [fcmError('INTERNAL')], outcome: { outcome: 'unknown', reason: '500' } },
])('an answer of $status with $details is $outcome', async ({ status, details, retryAfter, outcome }) => {
  answer = { status, body: { error: { code: status, details } }, ...(retryAfter !== undefined && { retryAfter }) };
  expect(await fcm().send(push, signal)).toEqual(outcome);
});

test('an answer of success without a name may be one', async () => {
  answer = { status: 200, body: 'garbage' };
  expect(await fcm().send(push, signal)).toEqual({ outcome: 'unknown', reason: 'no name' });
});

test('nothing was sent where no token is to be had', async () => {
  const account = { clientEmail: 'a', privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
  const settings = {
    baseUrl: new URL(url),
    timeoutMs: 15_000,
    projectId: 'p',
    account: { ...account, tokenUri: 'http://127.0.0.1:1/' },
  };
  expect(await createFcm(settings, { dispatcher, clock: systemClock }).send(push, signal)).toEqual({
    outcome: 'failed',
    reason: 'no access token',
  });
  expect(requests).toEqual([]);
});
