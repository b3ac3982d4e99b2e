import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tryLock } from './file-lock.ts';

describe('tryLock', () => {
  let directory: string;
  let path: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'rollcall-lock-'));
    path = join(directory, 'lock');
  });
  afterEach(() => rm(directory, { recursive: true }));

  test('is exclusive until it is released', async () => {
    const first = await tryLock(path);
    if (!('lock' in first)) throw new Error('not acquired');
    expect(await tryLock(path)).toEqual({ heldBy: process.pid });
    await first.lock[Symbol.asyncDispose]();
    const again = await tryLock(path);
    expect(again).toHaveProperty('lock');
    if ('lock' in again) await again.lock[Symbol.asyncDispose]();
  });

  test('is had by one of many who try at once, in one process as well', async () => {
    for (let round = 0; round < 50; round += 1) {
      const attempts = await Promise.all(Array.from({ length: 8 }, () => tryLock(path)));
      const acquired = attempts.flatMap((attempt) => ('lock' in attempt ? [attempt.lock] : []));
      expect(acquired).toHaveLength(1);
      for (const lock of acquired) await lock[Symbol.asyncDispose]();
    }
  });

  test.each([
    ['whose process is gone', '2147483646', 0],
    ['that was not touched for long', String(process.pid), 60_000],
    ['that holds no process id', '', 0],
  ])('acquires a lock %s', async (_, content, ageMs) => {
    await writeFile(path, content);
    const touched = new Date(Date.now() - ageMs);
    await utimes(path, touched, touched);
    const attempt = await tryLock(path);
    expect(await readFile(path, 'utf8')).toBe(String(process.pid));
    if ('lock' in attempt) await attempt.lock[Symbol.asyncDispose]();
  });
});
