import { expect, test } from 'vitest';
import { hasPreflight, isMutation, mediaTypeFor, RESPONSE_TYPE, variablesOf } from './graphql-over-http.ts';

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

test.each([
  [undefined, undefined],
  ['', undefined],
  ['null', undefined],
  ['{}', {}],
  ['{"id":"1"}', { id: '1' }],
])('the variables %s are %j', (text, variables) => {
  expect(variablesOf(text)).toEqual(variables);
});

test.each(['[]', '1', '"text"', '{'])('the variables %s are refused', (text) => {
  expect(() => variablesOf(text)).toThrow('query/variables must be a JSON object');
});

test.each([
  ['{ a }', undefined, false],
  ['mutation { a }', undefined, true],
  ['query A { a } mutation B { b }', 'A', false],
  ['query A { a } mutation B { b }', 'B', true],
  ['query A { a } mutation B { b }', undefined, false],
  ['mutation {', undefined, false],
  [`{ ${'a '.repeat(5000)} }`, undefined, false],
])('%.40s with the operation %s is a mutation: %s', (query, operationName, is) => {
  expect(isMutation(query, operationName)).toBe(is);
});
