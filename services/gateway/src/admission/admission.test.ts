import { expect, test } from 'vitest';
import { GatewayError } from '../errors.ts';
import { type Asked, admit } from './admission.ts';
import type { Caller } from './caller.ts';
import type { LimitedRequest } from './limits.ts';

const alice: Caller = { subject: 'alice', tier: 'free', scopes: new Set(['a']), expiresAtMs: Number.POSITIVE_INFINITY };
const limits = { route: 'reports', limits: {} };

interface Request {
  readonly token?: string | undefined;
  readonly asks?: Asked;
  readonly isOver?: boolean;
}

/** What becomes of a request, and what it was counted as. */
async function outcomeOf({ token, asks, isOver = false }: Request) {
  const counted: LimitedRequest[] = [];
  let told: object | undefined;
  const deps = {
    authenticator: {
      authenticate(shown: string) {
        if (shown !== 'good') throw new GatewayError('INVALID_TOKEN');
        return alice;
      },
    },
    limits: {
      check(request: LimitedRequest) {
        counted.push(request);
        return { headers: { left: '0' }, refusal: isOver ? new GatewayError('RATE_LIMITED') : undefined };
      },
    },
  };
  const arrived = {
    remoteAddress: '192.0.2.1',
    forwardedFor: undefined,
    token: () => token,
    onCounted: (seen: object) => {
      told = seen;
    },
  };
  const read = (): Asked => {
    if (asks === undefined) throw new GatewayError('INVALID_PATH');
    return asks;
  };
  const result = await admit(deps, arrived, read).then(
    ({ holder }) => holder?.caller.subject ?? 'anonymous',
    (error: unknown) => (error instanceof GatewayError ? error.code : String(error)),
  );
  const [{ caller, route } = {}] = counted;
  expect(counted).toHaveLength(1);
  expect(told).toEqual({ caller, headers: { left: '0' } });
  return [result, caller?.subject, route?.route];
}

const open: Asked = { scopes: [], limits, anonymous: true };
const closed: Asked = { scopes: [], limits };
const scoped: Asked = { scopes: ['a', 'b'], limits, anonymous: true };

test.each<[string, Request, [result: string, subject: string | undefined, route: string | undefined]]>([
  ['a good token', { token: 'good', asks: closed }, ['alice', 'alice', 'reports']],
  ['no token where none is needed', { asks: open }, ['anonymous', undefined, 'reports']],
  ['no token', { asks: closed }, ['UNAUTHENTICATED', undefined, undefined]],
  ['a bad token', { token: 'bad', asks: closed }, ['INVALID_TOKEN', undefined, undefined]],
  ['a bad token where none is needed', { token: 'bad', asks: open }, ['INVALID_TOKEN', undefined, undefined]],
  ['no token where anybody may come, and a scope', { asks: scoped }, ['UNAUTHENTICATED', undefined, 'reports']],
  ['a scope that is missing', { token: 'good', asks: scoped }, ['INSUFFICIENT_SCOPE', 'alice', 'reports']],
  [
    'over the limit, without a scope',
    { token: 'good', asks: scoped, isOver: true },
    ['RATE_LIMITED', 'alice', 'reports'],
  ],
  [
    'over the limit, with a bad token',
    { token: 'bad', asks: closed, isOver: true },
    ['RATE_LIMITED', undefined, undefined],
  ],
  ['what cannot be read', { token: 'good' }, ['INVALID_PATH', 'alice', undefined]],
  ['what cannot be read, over the limit', { token: 'good', isOver: true }, ['RATE_LIMITED', 'alice', undefined]],
  ['what cannot be read, with a bad token', { token: 'bad' }, ['INVALID_TOKEN', undefined, undefined]],
  ['what cannot be read, without a token', {}, ['INVALID_PATH', undefined, undefined]],
])('%s', async (_what, request, outcome) => {
  expect(await outcomeOf(request)).toEqual(outcome);
});
