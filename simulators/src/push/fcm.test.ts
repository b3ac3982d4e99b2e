import { systemClock } from '@rollcall/platform/clock.ts';
import { generateKeyPair, importPKCS8, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Simulator } from '../simulator.ts';
import { startFcm } from './fcm.ts';

const PROJECT = 'shop';
const TOKEN = `fGh1JkLmNoP:APA91b${'x'.repeat(134)}`;
const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging';
const GOOGLE = 'https://oauth2.googleapis.com/token';
const FCM_ERROR = 'type.googleapis.com/google.firebase.fcm.v1.FcmError';
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest';
const NOW = new Date('2026-11-20T10:00:00Z');
const NOW_SECONDS = NOW.getTime() / 1000;

interface Account {
  readonly project_id: string;
  readonly client_email: string;
  readonly private_key_id: string;
  readonly private_key: string;
  readonly token_uri: string;
}

let simulator: Simulator;
let account: Account;
let now: Date;

beforeEach(async () => {
  now = NOW;
  simulator = await startFcm({ projectId: PROJECT, clock: { ...systemClock, now: () => now } });
  const credentials = await (await fetch(`${simulator.url}/_control/credentials`)).text();
  account = JSON.parse(credentials).serviceAccount;
});

afterEach(async () => {
  await simulator.stop();
});

describe('the token endpoint', () => {
  test('gives an access token for an assertion of the service account', async () => {
    for (const audience of [account.token_uri, GOOGLE]) {
      const { status, body } = await grant({ aud: audience });
      expect(status).toBe(200);
      expect(body).toEqual({
        access_token: expect.stringMatching(/^ya29\./),
        expires_in: 3599,
        token_type: 'Bearer',
      });
    }
  });

  test.each([
    [{ iss: 'other@shop.iam.gserviceaccount.com' }, 'invalid_grant', /account not found/],
    [{ aud: 'https://oauth2.example.com/token' }, 'invalid_grant', /audience/],
    [{ exp: NOW_SECONDS + 3601 }, 'invalid_grant', /short-lived/],
    [{ iat: NOW_SECONDS - 3700, exp: NOW_SECONDS - 100 }, 'invalid_grant', /short-lived/],
    [{ iat: NOW_SECONDS + 900, exp: NOW_SECONDS + 1000 }, 'invalid_grant', /short-lived/],
    [{ exp: undefined }, 'invalid_grant', /short-lived/],
    [{ scope: 'https://www.googleapis.com/auth/drive' }, 'invalid_scope', /scope/],
    [{ scope: undefined }, 'invalid_scope', /scope/],
  ])('refuses the claims %j', async (claims, error, description) => {
    const { status, body } = await grant(claims);
    expect(status).toBe(400);
    expect(body).toEqual({ error, error_description: expect.stringMatching(description) });
  });

  test('refuses an assertion by another key, algorithm or grant', async () => {
    const { privateKey } = await generateKeyPair('RS256');
    const stranger = await new SignJWT(claimsOf({})).setProtectedHeader({ alg: 'RS256' }).sign(privateKey);
    const ours = await importPKCS8(account.private_key, 'RS256');
    const retired = await new SignJWT(claimsOf({})).setProtectedHeader({ alg: 'RS256', kid: 'retired' }).sign(ours);
    const text = await new SignJWT(claimsOf({})).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32));
    for (const assertion of [stranger, retired, text, 'a.b.c', '']) {
      expect((await ask({ assertion })).body).toMatchObject({
        error: 'invalid_grant',
        error_description: 'Invalid JWT Signature.',
      });
    }
    expect((await ask({ grant_type: 'client_credentials' })).body).toMatchObject({ error: 'unsupported_grant_type' });
  });
});

describe('a message', () => {
  test('is taken once its access token holds, for its own project', async () => {
    const token = await accessToken();
    const { status, body } = await send({ notification: { title: 'Hi', body: 'there' } }, token);
    expect([status, body.name]).toEqual([200, expect.stringMatching(/^projects\/shop\/messages\/.+$/)]);
    expect(await sent()).toMatchObject([{ name: body.name, message: { token: TOKEN, notification: { title: 'Hi' } } }]);
    now = new Date(NOW.getTime() + 3_599_000);
    expect(await send({}, token)).toMatchObject({ status: 401, body: { error: { status: 'UNAUTHENTICATED' } } });
    expect((await send({}, 'ya29.guess')).status).toBe(401);
    const other = await call('/v1/projects/other/messages:send', { message: { token: TOKEN } }, await accessToken());
    expect(other).toMatchObject({ status: 403, body: { error: { status: 'PERMISSION_DENIED' } } });
  });

  test('is only checked where that is asked for', async () => {
    const body = { validate_only: true, message: { token: TOKEN } };
    expect((await call(`/v1/projects/${PROJECT}/messages:send`, body, await accessToken())).status).toBe(200);
    expect(await sent()).toEqual([]);
  });

  test('may have every part, with names of JSON or with underscores', async () => {
    const { status } = await send({
      data: { order: '1' },
      android: { priority: 'high', ttl: '3600s', collapse_key: 'a', notification: { channelId: 'b' } },
      apns: { headers: { 'apns-priority': '10' }, payload: { aps: { badge: 1 } } },
      webpush: { headers: { TTL: '60' }, notification: { title: 'a' }, fcm_options: { link: 'https://example.com' } },
      fcmOptions: { analytics_label: 'a' },
    });
    expect(status).toBe(200);
    expect(await sent()).toMatchObject([{ message: { android: { collapseKey: 'a' } } }]);
  });

  test.each([
    [{ data: { order: 1 } }, 'message.data[0].value'],
    [{ data: ['a'] }, 'message.data'],
    [{ colour: 'red' }, 'message'],
    [{ constructor: 'a' }, 'message'],
    [{ notification: { title: 'a', icon: 'b' } }, 'message.notification'],
    [{ notification: 'a' }, 'message.notification'],
    [{ android: { priority: 'urgent' } }, 'message.android.priority'],
    [{ android: { ttl: 3600 } }, 'message.android.ttl'],
    [{ android: { ttl: '1h' } }, 'message.android.ttl'],
    [{ android: { notification: { vibrate_timings: ['1s', 1] } } }, 'message.android.notification.vibrate_timings[1]'],
    [{ apns: { headers: { 'apns-priority': 10 } } }, 'message.apns.headers[0].value'],
    [{ apns: { payload: 'a' } }, 'message.apns.payload'],
    [{ token: undefined }, 'message'],
    [{ topic: 'news' }, 'message'],
  ])('is refused for the shape %j, which blames no token', async (changes, field) => {
    const { status, body } = await send(changes);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' });
    expect(body.error.details).toEqual([
      { '@type': BAD_REQUEST, fieldViolations: [{ field, description: expect.any(String) }] },
    ]);
  });

  test.each([
    [{ data: { from: 'a' } }, [FCM_ERROR, BAD_REQUEST]],
    [{ data: { 'google.a': 'a' } }, [FCM_ERROR, BAD_REQUEST]],
    [{ android: { ttl: '2419201s' } }, [FCM_ERROR, BAD_REQUEST]],
    [{ token: undefined, topic: 'a b' }, [FCM_ERROR, BAD_REQUEST]],
    [{ token: 'short' }, [FCM_ERROR]],
    [{ notification: { body: 'é'.repeat(2047) } }, [FCM_ERROR]],
    [{ apns: { payload: { a: 'a'.repeat(4096) } } }, [FCM_ERROR]],
    [{ token: undefined, topic: 'news', data: { a: 'a'.repeat(2048) } }, [FCM_ERROR]],
  ])('is refused for the content %j with INVALID_ARGUMENT', async (changes, types) => {
    const { status, body } = await send(changes);
    expect(status).toBe(400);
    expect(body.error.details.map((detail: Record<string, string>) => detail['@type'])).toEqual(types);
    expect(body.error.details[0]).toEqual({ '@type': FCM_ERROR, errorCode: 'INVALID_ARGUMENT' });
  });

  test('of exactly the most bytes is taken', async () => {
    expect((await send({ notification: { body: 'é'.repeat(2046) } })).status).toBe(200);
  });

  test.each([
    ['UNREGISTERED', 404, 'NOT_FOUND'],
    ['SENDER_ID_MISMATCH', 403, 'PERMISSION_DENIED'],
    ['INVALID_ARGUMENT', 400, 'INVALID_ARGUMENT'],
    ['QUOTA_EXCEEDED', 429, 'RESOURCE_EXHAUSTED'],
    ['UNAVAILABLE', 503, 'UNAVAILABLE'],
    ['INTERNAL', 500, 'INTERNAL'],
    ['THIRD_PARTY_AUTH_ERROR', 401, 'UNAUTHENTICATED'],
  ])('to a token that is said to be %s is answered with %i', async (errorCode, code, status) => {
    simulator.setOutcomes({ [TOKEN]: errorCode });
    const answer = await send({});
    expect(answer.status).toBe(code);
    expect(answer.body.error).toMatchObject({ code, status, details: [{ '@type': FCM_ERROR, errorCode }] });
    expect(await sent()).toEqual([]);
  });

  test('is refused without the error of FCM where that is said', async () => {
    simulator.setOutcomes({ [TOKEN]: 'BAD_REQUEST' });
    const { body } = await send({});
    expect(body.error.details.map((detail: Record<string, string>) => detail['@type'])).toEqual([BAD_REQUEST]);
  });

  test.each([
    [429, 'QUOTA_EXCEEDED'],
    [503, 'UNAVAILABLE'],
    [500, 'INTERNAL'],
  ])('meets a fault %i as %s', async (status, errorCode) => {
    const token = await accessToken();
    simulator.addFaults({ kind: 'status', status });
    expect(await send({}, token)).toMatchObject({ status, body: { error: { details: [{ errorCode }] } } });
  });

  test('needs a new access token after everything was forgotten', async () => {
    const token = await accessToken();
    await simulator.reset();
    expect((await send({}, token)).status).toBe(401);
    expect((await send({})).status).toBe(200);
  });
});

function claimsOf(changes: object): Record<string, unknown> {
  const { client_email: iss, token_uri: aud } = account;
  return { iss, aud, scope: SCOPE, iat: NOW_SECONDS, exp: NOW_SECONDS + 3600, ...changes };
}

async function grant(changes: object) {
  const key = await importPKCS8(account.private_key, 'RS256');
  const claims = claimsOf({ iat: now.getTime() / 1000, exp: now.getTime() / 1000 + 3600, ...changes });
  const header = { alg: 'RS256', kid: account.private_key_id };
  return await ask({ assertion: await new SignJWT(claims).setProtectedHeader(header).sign(key) });
}

async function ask(fields: Record<string, string>) {
  const form = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', ...fields });
  const answer = await fetch(account.token_uri, { method: 'POST', body: form });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

async function accessToken(): Promise<string> {
  return (await grant({})).body.access_token;
}

async function send(changes: object, token?: string) {
  const message = { token: TOKEN, ...changes };
  return await call(`/v1/projects/${PROJECT}/messages:send`, { message }, token ?? (await accessToken()));
}

async function call(path: string, value: unknown, token: string) {
  const answer = await fetch(`${simulator.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(value),
  });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

async function sent(): Promise<unknown> {
  return JSON.parse(await (await fetch(`${simulator.url}/_control/state`)).text()).messages;
}
