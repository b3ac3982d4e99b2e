import { expect, test } from 'vitest';
import { bodyFault } from './body-text.ts';

const json = 'application/json';

test.each([
  [{ 'content-type': json }],
  [{ 'content-type': `${json}; charset=utf-8` }],
  [{ 'content-type': `${json};CHARSET="UTF8"` }],
  [{ 'content-type': `${json}; charset=us-ascii; x=y` }],
  [{ 'content-type': json, 'content-encoding': 'identity' }],
  [{ 'content-type': json, 'content-encoding': '' }],
  [{}],
])('a body with %j is read', (headers) => {
  expect(bodyFault(headers)).toBeUndefined();
});

test.each([
  [{ 'content-encoding': 'gzip' }],
  [{ 'content-encoding': 'identity, BR' }],
  [{ 'content-encoding': 'nonsense' }],
])('a body with %j is refused, and the answer has what is accepted', (headers) => {
  expect(bodyFault(headers)).toMatchObject({ statusCode: 415, headers: { 'accept-encoding': 'identity' } });
});

test.each(['utf-16', '"ISO-8859-1"', 'latin1', 'utf-8x', '""'])('a body in the charset %s is refused', (charset) => {
  expect(bodyFault({ 'content-type': `${json}; charset=${charset}` })).toMatchObject({ statusCode: 415 });
});
