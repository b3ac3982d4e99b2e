import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cacheDirectory } from './cache-directory.ts';

test('cacheDirectory follows XDG_CACHE_HOME, else it is in ~/.cache', () => {
  expect(cacheDirectory({ XDG_CACHE_HOME: '/var/cache' }, 'redis')).toBe('/var/cache/rollcall/redis');
  expect(cacheDirectory({ XDG_CACHE_HOME: '' }, 'redis')).toBe(join(homedir(), '.cache/rollcall/redis'));
  expect(cacheDirectory({}, 'kubernetes')).toBe(join(homedir(), '.cache/rollcall/kubernetes'));
});
