import { expect, test } from 'vitest';
import { createPathMethods } from './path-methods.ts';

const methods = createPathMethods();
methods.add('/things', ['POST']);
methods.add('/things', 'GET');
methods.add('/things/new', 'POST');
methods.add('/things/:name', ['GET', 'DELETE']);
methods.add('/things/:name/beats', 'POST');
methods.add('/files/*', 'GET');

test.each([
  ['/things', ['GET', 'POST']],
  ['/things/a', ['DELETE', 'GET']],
  ['/things/new', ['DELETE', 'GET', 'POST']],
  ['/things/a%2Fb', ['DELETE', 'GET']],
  ['/things/a/beats', ['POST']],
  ['/files/a/b', ['GET']],
  ['/files', []],
  ['/things/a/b', []],
  ['/thing', []],
  ['/', []],
  ['', []],
])('%s: %j', (path, allowed) => {
  expect(methods.at(path)).toEqual(allowed);
  expect(methods.has(path)).toBe(allowed.length > 0);
});
