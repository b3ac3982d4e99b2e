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

test('subgraphs get the trace and the language of a request, and nothing by which it shows who calls', () => {
  expect(passedHeaders(headers)).toEqual({ 'accept-language': 'de', traceparent: '00-1-2-01' });
});
