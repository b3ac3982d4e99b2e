import { expect, test } from 'vitest';
import { tokenOf } from './credentials.ts';

const requestWith = (headers: Readonly<Record<string, string>>) => ({ headers });

test.each([
  ['in the header', { authorization: 'Bearer a.b.c' }],
  ['whatever the case of the scheme', { authorization: 'bearer a.b.c' }],
  ['as a subprotocol', { 'sec-websocket-protocol': 'rollcall.v1, bearer.a.b.c' }],
  ['as a subprotocol, in any order', { 'sec-websocket-protocol': 'bearer.a.b.c,rollcall.v1' }],
  ['twice the same', { authorization: 'Bearer a.b.c', 'sec-websocket-protocol': 'rollcall.v1, bearer.a.b.c' }],
])('takes a token %s', (_where, headers) => {
  expect(tokenOf(requestWith(headers))).toBe('a.b.c');
});

test.each([
  ['nothing', {}],
  ['another scheme', { authorization: 'Basic a.b.c' }],
  ['a scheme alone', { authorization: 'Bearer ' }],
  ['two words', { authorization: 'Bearer a b' }],
  ['no token among the subprotocols', { 'sec-websocket-protocol': 'rollcall.v1' }],
  ['an empty token', { 'sec-websocket-protocol': 'rollcall.v1, bearer.' }],
])('%s is no token', (_what, headers) => {
  expect(() => tokenOf(requestWith(headers))).toThrow(expect.objectContaining({ code: 'UNAUTHENTICATED' }));
});

test.each([
  ['a subprotocol that is not ours', { authorization: 'Bearer a', 'sec-websocket-protocol': 'graphql-ws' }],
  ['a token that would have to be named in the answer', { 'sec-websocket-protocol': 'bearer.a' }],
  ['two tokens', { 'sec-websocket-protocol': 'rollcall.v1, bearer.a, bearer.b' }],
  ['another token in the header', { authorization: 'Bearer a', 'sec-websocket-protocol': 'rollcall.v1, bearer.b' }],
])('refuses %s', (_what, headers) => {
  expect(() => tokenOf(requestWith(headers))).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }));
});
