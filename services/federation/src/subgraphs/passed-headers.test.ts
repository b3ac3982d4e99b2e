import { expect, test } from 'vitest';
import { passedHeaders } from './passed-headers.ts';

const headers = {
  authorization: 'Bearer token',
  'x-rollcall-identity': 'signed',
  'x-rollcall-subject': 'anna',
  'accept-language': 'de',
  traceparent: '00-1-2-01',
  cookie: 'session=1',
  host: 'federation',
  'content-length': '12',
  'set-cookie': ['a=1'],
};

test('subgraphs get who calls, the trace and the language, and nothing else', () => {
  expect(passedHeaders(headers, true)).toEqual({
    authorization: 'Bearer token',
    'x-rollcall-identity': 'signed',
    'x-rollcall-subject': 'anna',
    'accept-language': 'de',
    traceparent: '00-1-2-01',
  });
});

test('of a caller who has shown nothing that holds they get no identity', () => {
  expect(passedHeaders(headers, false)).toEqual({ 'accept-language': 'de', traceparent: '00-1-2-01' });
});
