import { expect, test } from 'vitest';
import { createPassedHeaders } from './passed-headers.ts';
import { readHeaderRules } from './rules.ts';

function collect(rules: object) {
  const answers = createPassedHeaders(readHeaderRules(rules)).collect();
  if (answers === undefined) throw new Error('There are no rules for answers');
  return answers;
}

const of = (name: string) => ({
  'x-first': name,
  'x-last': name,
  'x-all-names': [name, `${name}2`],
  'x-price': '1',
  'x-not': name,
  'set-cookie': 'a=1',
});

test('of several answers the first, the last or all are passed on', () => {
  const answers = collect({
    all: {
      response: [
        { pass: 'x-first', merge: 'first' },
        { pass: 'x-last' },
        { pass: 'X-All-*', merge: 'append' },
        { pass: 'x-price', as: 'x-cost', merge: 'append' },
      ],
    },
    services: { shop: { response: [{ remove: 'x-last' }, { set: 'x-shop', to: 'asked' }] } },
  });
  answers.take('users', of('users'));
  answers.take('shop', of('shop'));
  expect(answers.merged(true)).toEqual({
    'x-first': 'users',
    'x-last': 'users',
    'x-all-names': 'users, users2, shop, shop2',
    'x-cost': '1, 1',
    'x-shop': 'asked',
  });
});

test('what is no value of a header field is left out, and what is added up has an end', () => {
  const answers = collect({ all: { response: [{ pass: 'x-*', merge: 'append' }] } });
  answers.take('shop', { 'x-bad': 'a\u0000b', 'x-wide': '\u{1f600}', 'x-ratelimit-limit': '1', x_under: '1' });
  for (let times = 0; times < 5000; times += 1) answers.take('shop', { 'x-all': 'abcdefgh' });
  const merged = answers.merged(true);
  expect(Object.keys(merged)).toEqual(['x-all']);
  expect(merged['x-all']?.length).toBeLessThanOrEqual(8192);
});

const DAY = 'public, max-age=86400';
test.each([
  [[DAY], 'private, max-age=86400'],
  [[DAY, 'max-age=60'], 'private, max-age=60'],
  [['max-age=60', DAY], 'private, max-age=60'],
  [[DAY, 'private, max-age="30", must-revalidate'], 'private, max-age=30, must-revalidate'],
  [[DAY, 'no-cache'], 'private, max-age=0, must-revalidate'],
  [[DAY, 'private'], 'private, max-age=0'],
  [[DAY, 'max-age=soon'], 'private, max-age=0'],
  [['max-age=60, max-age=5'], 'private, max-age=5'],
  [['s-maxage=60'], 'private, max-age=0'],
  [[DAY, 'NO-STORE'], 'no-store'],
  [[DAY, undefined], 'no-store'],
  [[], 'no-store'],
])('cache-control of answers with %j becomes %s', (values, expected) => {
  const answers = collect({ all: { response: [{ pass: 'cache-control' }] } });
  for (const value of values) answers.take('shop', { 'cache-control': value });
  expect(answers.merged(true)['cache-control']).toBe(expected);
  expect(answers.merged(false)['cache-control']).toBe('no-store');
});

test('what has been kept already is kept for the rest of its time', () => {
  const answers = collect({ all: { response: [{ pass: 'cache-*' }] } });
  answers.take('shop', { 'cache-control': ['public', 'max-age=60'], age: '20' });
  expect(answers.merged(true)['cache-control']).toBe('private, max-age=40');
});

test('who keeps an answer is told what it depends on', () => {
  const response = [{ pass: 'cache-control' }, { set: 'cache-control', to: 'max-age=9' }];
  const varyWith = (request: readonly object[]) => {
    const answers = collect({ all: { request, response } });
    answers.take('shop', {});
    return answers.merged(true)['vary'];
  };
  expect(varyWith([{ pass: 'x-tenant' }])).toBe('accept, authorization, graphql-cost, accept-language, x-tenant');
  expect(varyWith([{ pass: 'x-*' }])).toBe('*');
});
