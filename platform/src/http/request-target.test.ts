import { describe, expect, test } from 'vitest';
import { targetFault, toOriginForm } from './request-target.ts';

describe('the absolute form of a request target', () => {
  test.each([
    ['http://a/x?y=http://b/', 'a', '/x?y=http://b/'],
    ['HTTPS://a.example:8443/x', 'a.example:8443', '/x'],
    ['http://[::1]:80/', '[::1]:80', '/'],
    ['http://a', 'a', '/'],
    ['http://a?x', 'a', '/?x'],
  ])('%s is that of the origin, and its authority the Host', (url, host, path) => {
    const request = { url, headers: { host: 'other' } };
    toOriginForm(request);
    expect(request).toEqual({ url: path, headers: { host } });
    expect(targetFault(request.url)).toBeUndefined();
  });

  test.each(['/x', '//a/x', '/http://a/x'])('%s is a path', (url) => {
    const request = { url, headers: { host: 'h' } };
    toOriginForm(request);
    expect(request).toEqual({ url, headers: { host: 'h' } });
    expect(targetFault(url)).toBeUndefined();
  });

  test.each([
    ['*', /\* asks for no path/],
    ['a:80', /neither a path nor a URL/],
    ['ftp://a/x', /neither/],
    ['http://me@a/x', /neither/],
    ['http:///x', /neither/],
    ['x', /neither/],
  ])('%s is refused', (url, fault) => {
    const request = { url, headers: { host: 'h' } };
    toOriginForm(request);
    expect(request).toEqual({ url, headers: { host: 'h' } });
    expect(targetFault(request.url)).toMatch(fault);
  });
});
