import { array, assert, constantFrom, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { splitTarget } from './path.ts';

describe('splitTarget', () => {
  test.each([
    ['/api/v1/shop/orders?x=1&y=..//', '/api/v1/shop/orders', '?x=1&y=..//'],
    ['/api/v1/shop/', '/api/v1/shop/', ''],
    ['/api/v1/shop/a%20b/%C3%A9', '/api/v1/shop/a%20b/%C3%A9', ''],
    ['/api/v1/shop/...', '/api/v1/shop/...', ''],
    ['/api/v1/shop/..a', '/api/v1/shop/..a', ''],
    ['/api/v1/shop/a;v=1/b', '/api/v1/shop/a;v=1/b', ''],
    ['/?', '/', '?'],
  ])('%s', (target, path, query) => {
    expect(splitTarget(target)).toEqual({ path, query });
  });

  test.each([
    '/api/v1/shop/../payment',
    '/api/v1/shop/%2e%2E/payment',
    '/api/v1/shop/.%2e',
    '/api/v1/./shop',
    '/api/v1/shop/public/..;/admin',
    '/api/v1/shop/public/%2e.%3Bx/admin',
    '/api/v1/shop/.;x',
    '/api/v1//shop',
    '//evil.example/api/v1/shop',
    '/api/v1/shop%2Forders',
    '/api/v1/shop%5c..%5cx',
    '/api/v1/shop\\x',
    '/api/v1/shop/%00',
    '/api/v1/shop/%zz',
    '/api/v1/shop/%',
    '/api/v1/shop/é',
    '/api/v1/shop/a b',
    '/api/v1/shop/<x>',
    '/api/v1/shop#x',
    'http://evil.example/api/v1/shop',
    '*',
    '',
  ])('refuses %s', (target) => {
    expect(() => splitTarget(target)).toThrow(expect.objectContaining({ code: 'INVALID_PATH' }));
  });

  test('what passes means the same to the URL parser', () => {
    assert(
      property(array(constantFrom('a', '.', '/', '%2e', '%2f', '\\', '%', ';', 'é', '~')), (parts) => {
        const target = `/${parts.join('')}`;
        let path: string;
        try {
          ({ path } = splitTarget(target));
        } catch {
          return;
        }
        expect(new URL(`http://host${target}`).pathname).toBe(path);
      }),
    );
  });
});
