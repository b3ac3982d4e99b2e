import { expect, test } from 'vitest';
import { providerBaseUrl, urlBelow } from './base-url.ts';

test.each([
  'https://api.example.com',
  'https://api.example.com:8443/v1',
  'http://127.0.0.1:9000',
  'http://[::1]:9000',
  'http://localhost:1',
])('%s may be the base URL of a provider in production', (text) => {
  expect(providerBaseUrl(text, true).href).toBe(new URL(text).href);
});

test.each([
  ['http://api.example.com', 'https in production'],
  ['http://10.0.0.1', 'https in production'],
  ['http://127.0.0.1.example.com', 'https in production'],
  ['http://localhost.example.com', 'https in production'],
  ['ftp://api.example.com', 'https or http'],
  ['https://user:pass@api.example.com', 'credentials'],
  ['https://api.example.com/?a=1', 'neither query'],
  ['https://api.example.com/#a', 'neither query'],
  ['api.example.com', 'not a URL'],
])('%s is refused in production', (text, reason) => {
  expect(() => providerBaseUrl(text, true)).toThrow(reason);
});

test('http is allowed outside of production', () => {
  expect(providerBaseUrl('http://simulator.test', false).host).toBe('simulator.test');
});

test.each([
  ['https://a.example', 'checkouts', 'https://a.example/checkouts'],
  ['https://a.example/api/', '/checkouts/1', 'https://a.example/api/checkouts/1'],
  ['https://a.example/api', '/checkouts', 'https://a.example/api/checkouts'],
])('below %s, %s is %s', (base, path, url) => {
  expect(urlBelow(new URL(base), path).href).toBe(url);
});
