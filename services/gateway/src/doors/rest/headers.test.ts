import { describe, expect, test } from 'vitest';
import {
  acceptsTrailers,
  type ForwardedRequest,
  requestHeaders,
  responseHeaders,
  responseTrailers,
} from './headers.ts';

const forwarded: ForwardedRequest = {
  clientAddress: '192.0.2.7',
  forwardedFor: '192.0.2.7, 10.0.0.1',
  protocol: 'https',
  host: 'api.example.com',
  requestId: 'r1',
  service: 'shop',
  identity: ['x-rollcall-subject', 'shop'],
};

const trace = { traceparent: '00-t', tracestate: undefined };

function namesOf(headers: readonly string[]): readonly string[] {
  return headers.filter((_, index) => index % 2 === 0);
}

describe('requestHeaders', () => {
  test('keeps what is for the service, repeated headers included', () => {
    const headers = requestHeaders(['Accept', 'a', 'Accept', 'b', 'Cookie', 'c=1'], forwarded, trace);
    expect(headers.slice(0, 6)).toEqual(['accept', 'a', 'accept', 'b', 'cookie', 'c=1']);
  });

  test.each([
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'Proxy-Connection',
    'Proxy-Authorization',
    'HTTP2-Settings',
    'Host',
    'Expect',
    'Authorization',
    'X-Rollcall-Tier',
    'x-rollcall-',
    'X_Rollcall_Subject',
    'x-rollcall_identity',
    'X_Forwarded_For',
    'X-Forwarded-Prefix',
    'X-Forwarded-Ssl',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-HTTP-Method-Override',
    'x_http_method',
    'X-Method-Override',
  ])('drops %s', (name) => {
    const made = namesOf(requestHeaders([name, 'keep-alive'], { ...forwarded, identity: [] }, trace));
    expect(made).not.toContain(name.toLowerCase());
  });

  test('drops what Connection names, in each of several and in any case', () => {
    const raw = ['X-A', '1', 'Connection', 'close, x-a', 'x-B', '2', 'connection', ' X-B ,X-C', 'X-C', '3', 'X-D', '4'];
    expect(namesOf(requestHeaders(raw, forwarded, trace)).filter((name) => /^x-[a-d]$/.test(name))).toEqual(['x-d']);
  });

  test('has the trace that the gateway says, and no other', () => {
    const raw = ['Traceparent', '00-theirs', 'TraceState', 'theirs=1'];
    expect(requestHeaders(raw, forwarded, trace).join()).not.toContain('theirs');
    const headers = requestHeaders(raw, forwarded, { ...trace, tracestate: 'ours=1' });
    expect(headers.slice(-4)).toEqual(['traceparent', '00-t', 'tracestate', 'ours=1']);
    expect(requestHeaders(raw, forwarded, undefined).join()).not.toContain('trace');
  });

  test('says by which name it was let in, whatever the caller says, also where nobody calls by name', () => {
    const headers = requestHeaders(['X-Rollcall-Service', 'theirs'], { ...forwarded, identity: [] }, trace);
    const at = headers.indexOf('x-rollcall-service');
    expect(headers[at + 1]).toBe('shop');
    expect(headers.join()).not.toContain('theirs');
  });

  test.each([
    ['服务', '%E6%9C%8D%E5%8A%A1'],
    ['a b\u007f', 'a%20b%7F'],
    ['shop-1.eu_x', 'shop-1.eu_x'],
  ])('names the service %s so that every header can', (service, expected) => {
    const headers = requestHeaders([], { ...forwarded, service }, trace);
    expect(headers[headers.indexOf('x-rollcall-service') + 1]).toBe(expected);
  });

  test('says who the client is where the caller says something else', () => {
    const headers = requestHeaders(['X-Real-IP', '10.9.9.9'], forwarded, trace);
    expect(headers.flatMap((name, index) => (name === 'x-real-ip' ? [headers[index + 1]] : []))).toEqual(['192.0.2.7']);
  });

  test('what Connection names takes nothing of the gateway away', () => {
    const raw = ['Connection', 'x-rollcall-subject, x-forwarded-for, forwarded'];
    const names = namesOf(requestHeaders(raw, forwarded, trace));
    expect(names).toEqual(expect.arrayContaining(['x-rollcall-subject', 'x-forwarded-for', 'forwarded']));
  });

  test.each([
    ['192.0.2.7', 'api.example.com', 'for=192.0.2.7;host=api.example.com;proto=https'],
    ['2001:db8::1', 'api.example.com:8443', 'for="[2001:db8::1]";host="api.example.com:8443";proto=https'],
    ['192.0.2.7', '', 'for=192.0.2.7;proto=https'],
    ['192.0.2.7', 'a";for=1"', 'for=192.0.2.7;host="a;for=1";proto=https'],
  ])('tells %s at %s by RFC 7239', (clientAddress, host, expected) => {
    const headers = requestHeaders([], { ...forwarded, clientAddress, host }, trace);
    expect(headers[headers.indexOf('forwarded') + 1]).toBe(expected);
  });
});

describe('responseHeaders', () => {
  test('drops what was for this hop, and lets the gateway have the last word', () => {
    const upstream = {
      'content-type': 'text/plain',
      connection: 'keep-alive, x-hop',
      'x-hop': '1',
      'keep-alive': 'timeout=5',
      'transfer-encoding': 'chunked',
      'set-cookie': ['a=1', 'b=2'],
      'x-request-id': 'theirs',
    };
    expect(responseHeaders(200, upstream, { 'x-request-id': 'ours', 'x-ratelimit-limit': 5 })).toEqual([
      'content-type',
      'text/plain',
      'set-cookie',
      ['a=1', 'b=2'],
      'x-request-id',
      'ours',
      'x-ratelimit-limit',
      '5',
    ]);
  });

  const limits = { 'x-ratelimit-remaining': '9', ratelimit: '"premium";r=9;t=60' };
  const ofService = { 'x-ratelimit-remaining': '0', ratelimit: '"sms";r=0;t=44' };

  test.each([
    [200, ofService, [['ratelimit', '"sms";r=0;t=44'], ...Object.entries(limits)]],
    [429, ofService, [...Object.entries(ofService), ['ratelimit', limits.ratelimit]]],
    [429, {}, Object.entries(limits)],
  ])(
    'of %i and a service that says %j has the limits of both, and the one that is used up',
    (status, upstream, all) => {
      expect(responseHeaders(status, upstream, limits)).toEqual(all.flat());
    },
  );

  test.each([
    [204, { 'content-length': '5' }, []],
    [
      205,
      { 'content-length': '5', 'content-type': 'text/plain' },
      ['content-type', 'text/plain', 'content-length', '0'],
    ],
    [205, {}, ['content-length', '0']],
    [304, { 'content-length': '5' }, ['content-length', '5']],
    [200, { 'content-length': '5' }, ['content-length', '5']],
    [200, { 'content-length': '5', 'transfer-encoding': 'chunked' }, []],
  ])('of %i has the length that it may have', (status, upstream, expected) => {
    expect(responseHeaders(status, upstream, {})).toEqual(expected);
  });
});

test.each([
  ['trailers', true],
  ['gzip, Trailers', true],
  ['trailers;q=0.5', false],
  ['gzip', false],
  [undefined, false],
])('a caller with TE: %s reads trailers: %s', (te, accepts) => {
  expect(acceptsTrailers(te)).toBe(accepts);
});

test('trailers change neither how an answer is read nor what the gateway says of it', () => {
  const upstream = {
    'server-timing': 'db;dur=5',
    digest: ['a', 'b'],
    'content-length': '3',
    'set-cookie': 'x',
    te: 'y',
  };
  expect(responseTrailers({ ...upstream, 'x-request-id': '7' }, { 'x-request-id': '1' })).toEqual([
    ['server-timing', 'db;dur=5'],
    ['digest', 'a'],
    ['digest', 'b'],
  ]);
});
