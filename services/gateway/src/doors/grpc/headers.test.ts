import { expect, test } from 'vitest';
import { isGrpc, readCallHead, readTrailers, responseHead } from './headers.ts';

const head = [':method', 'POST', ':scheme', 'http', ':path', '/shop.Cart/Add', ':authority', 'gateway'];

test('metadata goes on as it came, repeated and binary values included', () => {
  const metadata = [
    'content-type',
    'application/grpc+proto',
    'a',
    '1',
    'a',
    '2',
    'trace-bin',
    'AAH/',
    'grpc-encoding',
    'gzip',
  ];
  expect(readCallHead([...head, ...metadata]).forwarded).toEqual(metadata);
});

test.each([
  ['te', 'trailers'],
  ['host', 'elsewhere'],
  ['x-rollcall-subject', 'admin'],
  ['x-rollcall-identity', 'token'],
  ['x-forwarded-for', '10.0.0.1'],
  ['forwarded', 'for=10.0.0.1'],
  ['authorization', 'Bearer token'],
  ['proxy-authorization', 'Basic eDp5'],
  ['grpc-timeout', '1S'],
  ['rollcall-service', 'shop'],
  ['x-request-id', '7'],
])('%s does not go on', (name, value) => {
  expect(readCallHead([...head, name, value]).forwarded).toEqual([]);
});

test('what the gateway reads', () => {
  const named = ['authorization', 'Bearer x', 'grpc-timeout', '1S', 'rollcall-service', 'shop', 'x-request-id', '7'];
  const read = readCallHead([...head, ...named, 'x-forwarded-for', '10.0.0.1', 'x-forwarded-for', '10.0.0.2']);
  expect(read).toMatchObject({
    method: 'POST',
    path: '/shop.Cart/Add',
    authorization: 'Bearer x',
    timeout: '1S',
    override: 'shop',
    requestId: '7',
    forwardedFor: '10.0.0.1, 10.0.0.2',
    repeated: undefined,
  });
});

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test.each([
  [[['traceparent', PARENT]], { traceparent: PARENT, tracestate: undefined }],
  [
    [
      ['traceparent', PARENT],
      ['tracestate', 'a=1'],
      ['tracestate', 'b=2'],
    ],
    { traceparent: PARENT, tracestate: 'a=1, b=2' },
  ],
  [
    [
      ['traceparent', PARENT],
      ['traceparent', PARENT],
    ],
    undefined,
  ],
  [
    [
      ['traceparent', 'theirs'],
      ['tracestate', 'a=1'],
    ],
    undefined,
  ],
])('of %j the trace is %j, and nothing else goes on', (named, trace) => {
  expect(readCallHead([...head, ...named.flat()])).toMatchObject({ trace, forwarded: [], repeated: undefined });
});

test.each(['authorization', 'grpc-timeout', 'rollcall-service', 'x-request-id'])('a second %s is reported', (name) => {
  expect(readCallHead([...head, name, 'a', name, 'b']).repeated).toBe(name);
});

test.each([
  ['application/grpc', true],
  ['application/grpc+proto', true],
  ['application/grpc;charset=utf-8', true],
  ['application/grpc-web', false],
  ['application/grpcx', false],
  ['application/json', false],
  ['', false],
])('%j is gRPC: %j', (contentType, expected) => {
  expect(isGrpc(contentType)).toBe(expected);
});

test("the gateway's own headers win over the backend's", () => {
  const raw = [':status', '200', 'x-ratelimit-limit', '9', 'a', '1', 'a', '2', 'connection', 'close'];
  const expected = [':status', '200', 'a', '1', 'a', '2', 'x-ratelimit-limit', '100'];
  expect(responseHead(raw, { 'x-ratelimit-limit': '100' })).toEqual(expected);
});

test('trailers of one hop do not go on', () => {
  expect({ ...readTrailers(['grpc-status', '0', 'http2-settings', 'x', 'connection', 'close', 'te', 'x']) }).toEqual({
    'grpc-status': '0',
  });
});

test('repeated trailers stay apart', () => {
  expect({ ...readTrailers(['grpc-status', '0', 'x-bin', 'AA', 'x-bin', 'AQ', 'x-bin', 'Ag']) }).toEqual({
    'grpc-status': '0',
    'x-bin': ['AA', 'AQ', 'Ag'],
  });
});
