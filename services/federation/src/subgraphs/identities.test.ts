import { NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { beforeEach, expect, test } from 'vitest';
import { createSubgraphIdentities, type ShownCaller, type SubgraphIdentities, shownCaller } from './identities.ts';

const anna = { subject: 'anna ü', tier: 'free', scopes: new Set(['a', 'b']), expiresAtMs: 1e15 };
const caller: ShownCaller = { ...anna, token: 'shown', kind: 'jwt' };
let nowMs: number;
let asked: Readonly<Record<string, string>>[];
let answer: () => { readonly status: number; readonly body: string };
let identities: SubgraphIdentities;

const given = (seconds: number) => ({
  status: 200,
  body: JSON.stringify({ access_token: `identity ${asked.length}`, expires_in: seconds }),
});

beforeEach(() => {
  nowMs = 0;
  asked = [];
  answer = () => given(60);
  identities = createSubgraphIdentities({
    async askForToken(form) {
      asked.push(form);
      return { ...answer(), headers: {}, allHeaders: {}, isUtf8: true, cut: false, tookMs: 0 };
    },
    clock: { now: () => new Date(nowMs), monotonicMs: () => nowMs },
    log: createLogger('test', 'silent'),
  });
});

const tokenFor = async (service: string, of = caller) =>
  (await identities.headersFor(of, service))['x-rollcall-identity'];

test('a service gets an identity of its own, and the plain headers', async () => {
  expect(await identities.headersFor(caller, 'payment')).toEqual({
    'x-rollcall-identity': 'identity 1',
    'x-rollcall-subject': 'anna%20%C3%BC',
    'x-rollcall-tier': 'free',
    'x-rollcall-scopes': 'a b',
  });
  expect(asked).toEqual([
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: 'shown',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      audience: 'payment',
    },
  ]);
});

test('one exchange serves who shows a token to a service for 30 s, also at once', async () => {
  expect(await Promise.all([tokenFor('a'), tokenFor('a')])).toEqual(['identity 1', 'identity 1']);
  nowMs = 29_999;
  expect(await tokenFor('a')).toBe('identity 1');
  expect(await tokenFor('b')).toBe('identity 2');
  expect(await tokenFor('a', { ...caller, token: 'other' })).toBe('identity 3');
  nowMs = 30_000;
  expect(await tokenFor('a')).toBe('identity 4');
});

test('those of many callers are kept', async () => {
  const callers = [...Array(20_000).keys()].map((index) => ({ ...caller, token: `token of ${index}` }));
  answer = () => ({ status: 200, body: JSON.stringify({ access_token: 'x'.repeat(600), expires_in: 60 }) });
  for (const each of [...callers, ...callers]) await tokenFor('a', each);
  expect(asked).toHaveLength(20_000);
});

test('an identity is not used after its end', async () => {
  answer = () => given(10);
  await tokenFor('a');
  nowMs = 9999;
  expect(await tokenFor('a')).toBe('identity 1');
  nowMs = 10_000;
  expect(await tokenFor('a')).toBe('identity 2');
});

test.each([
  { status: 400, body: '{"error":"invalid_target"}' },
  { status: 200, body: '{}' },
  { status: 502, body: '<html>' },
  undefined,
])('what is no identity is told, and not kept: %o', async (wrong) => {
  answer = () => {
    if (wrong === undefined) throw new NoAnswerError('no answer', undefined);
    return wrong;
  };
  const both = await Promise.allSettled([tokenFor('a'), tokenFor('a')]);
  for (const each of both) expect(each).toMatchObject({ reason: { extensions: { code: 'SUBGRAPH_UNAVAILABLE' } } });
  answer = () => given(60);
  expect(await tokenFor('a')).toBe('identity 2');
});

test('an identity counts before an access token, and nothing of who is not known', () => {
  const headers = { authorization: 'Bearer token', 'x-rollcall-identity': 'shown' };
  expect(shownCaller(headers, anna)).toEqual(caller);
  expect(shownCaller({ authorization: 'Bearer token' }, anna)).toEqual({
    ...anna,
    token: 'token',
    kind: 'access_token',
  });
  expect(shownCaller(headers, undefined)).toBeUndefined();
});
