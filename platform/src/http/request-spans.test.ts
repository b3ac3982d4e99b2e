import { expect, test } from 'vitest';
import { requestAttributes } from './request-spans.ts';

const origin = { clientAddress: '192.0.2.7', protocol: 'https', host: 'api.example.com:8443' };

test('a request by the names of the semantic conventions, without its query and its headers', () => {
  const headers = { 'user-agent': 'curl/8', authorization: 'Bearer hunter2', cookie: 'hunter2' };
  expect(requestAttributes({ method: 'GET', url: '/a/b?token=hunter2', headers }, origin)).toEqual({
    'http.request.method': 'GET',
    'url.path': '/a/b',
    'url.scheme': 'https',
    'server.address': 'api.example.com',
    'server.port': 8443,
    'client.address': '192.0.2.7',
    'user_agent.original': 'curl/8',
  });
});

test.each([
  ['api.example.com', 'api.example.com', undefined],
  ['[2001:db8::1]:80', '[2001:db8::1]', 80],
  ['[2001:db8::1]', '[2001:db8::1]', undefined],
  ['', undefined, undefined],
  ['a:b:c', undefined, undefined],
])('the host %j', (host, address, port) => {
  const attributes = requestAttributes({ method: 'GET', url: '/', headers: {} }, { ...origin, host });
  expect([attributes['server.address'], attributes['server.port']]).toEqual([address, port]);
});

test('a method that is not common is another', () => {
  const attributes = requestAttributes({ method: 'PROPFIND', url: '/', headers: {} }, origin);
  expect(attributes).toMatchObject({ 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' });
});
