import { expect, test } from 'vitest';
import { hasPreflight, mediaTypeFor, RESPONSE_TYPE, statusOf } from './graphql-over-http.ts';

test.each([
  ['', 'application/json'],
  ['*/*', 'application/json'],
  ['application/json', 'application/json'],
  ['text/html', 'application/json'],
  [RESPONSE_TYPE, RESPONSE_TYPE],
  [`${RESPONSE_TYPE}, application/json;q=0.9`, RESPONSE_TYPE],
  [`Application/GraphQL-Response+JSON; charset=utf-8, application/json`, RESPONSE_TYPE],
  [`${RESPONSE_TYPE};q=0.5, application/json`, 'application/json'],
  [`${RESPONSE_TYPE};q=0`, 'application/json'],
  [`${RESPONSE_TYPE};q=much`, 'application/json'],
  ['text/event-stream', 'text/event-stream'],
  ['text/event-stream, application/json;q=0.9', 'text/event-stream'],
  ['application/json, text/event-stream', 'application/json'],
  [`${RESPONSE_TYPE}, text/event-stream`, RESPONSE_TYPE],
])('who accepts %s gets %s', (accept, type) => {
  expect(mediaTypeFor(accept)).toBe(type);
});

test.each([
  [{}, false],
  [{ accept: RESPONSE_TYPE, 'content-type': 'text/plain', cookie: 'a=1' }, false],
  [{ 'graphql-require-preflight': '' }, false],
  [{ 'graphql-require-preflight': '1' }, true],
  [{ 'apollo-require-preflight': 'true' }, true],
  [{ 'x-apollo-operation-name': 'Users' }, true],
  [{ 'x-requested-with': 'XMLHttpRequest' }, true],
])('a request with %j has one of the headers that need a preflight: %s', (headers, is) => {
  expect(hasPreflight(headers)).toBe(is);
});

const failed = (code: string) => ({ errors: [{ message: 'no', extensions: { code } }] });

test.each([
  ['an answer', { data: {} }, [200, 200]],
  ['an answer with nothing but errors', { ...failed('NOT_ANSWERABLE'), data: null }, [200, 200]],
  ['a document that is wrong', failed('INVALID_REQUEST'), [200, 400]],
  ['a document that is not known', failed('PERSISTED_QUERY_NOT_FOUND'), [200, 400]],
  ['what is too much', failed('DEPTH_LIMIT_EXCEEDED'), [400, 400]],
])('the status of %s depends on who asks', (_, answer, statuses) => {
  expect(['application/json', RESPONSE_TYPE].map((type) => statusOf(answer, type))).toEqual(statuses);
});
