import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { findRedisBinary, parseVersion } from './redis-binary.ts';

test.each([
  ['Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=d81b8ff71cfb150e', '7.0.15'],
  ['Valkey server v=8.1.4 sha=00000000:0 malloc=libc bits=64 build=1b2f3c4d5e6f7081', '8.1.4'],
  ['redis-cli 7.0.15', undefined],
  ['', undefined],
])('parseVersion of "%s" is %s', (output, expected) => {
  expect(parseVersion(output)).toBe(expected);
});

describe('findRedisBinary', () => {
  let directory: string;
  const lines: string[] = [];
  const find = (redisServer?: string) =>
    findRedisBinary({ redisServer, cacheDirectory: join(directory, 'cache'), log: (line) => lines.push(line) });

  /**
   * A program that prints a version, and the only one of its name on the PATH when that is where it
   * is.
   */
  async function program(path: string, output: string): Promise<string> {
    const file = join(directory, path);
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, `#!/bin/sh\necho '${output}'\n`, { mode: 0o755 });
    return file;
  }

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'rollcall-redis-'));
    lines.length = 0;
    vi.stubEnv('PATH', ['one', 'two'].map((name) => join(directory, name)).join(delimiter));
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true });
  });

  test('uses REDIS_SERVER before anything else', async () => {
    await program('one/redis-server', 'Redis server v=8.0.0');
    const file = await program('mine', 'Valkey server v=9.0.1');
    expect(await find(file)).toEqual({ file, version: '9.0.1', env: {} });
  });

  test.each([
    ['is not there', undefined, 'which is not an executable file'],
    ['is something else', 'git version 2.39.5', 'which is not a Redis or Valkey server of version 7 or newer'],
    ['is too old', 'Redis server v=6.2.16', 'which is not a Redis or Valkey server of version 7 or newer'],
  ])('refuses a REDIS_SERVER that %s, whatever else there is', async (_, output, message) => {
    await program('one/redis-server', 'Redis server v=8.0.0');
    const file = output === undefined ? join(directory, 'absent') : await program('mine', output);
    await expect(find(file)).rejects.toThrow(`REDIS_SERVER is ${file}, ${message}`);
  });

  test('uses what is on the PATH and new enough, without a word', async () => {
    const file = await program('two/redis-server', 'Redis server v=7.2.11');
    expect(await find('')).toEqual({ file, version: '7.2.11', env: {} });
    expect(lines).toEqual([]);
  });

  test('uses what is in the cache and runs here, with its libraries', async () => {
    const platform = `${process.platform}-${process.arch}`;
    await program(`cache/redis-server_6.0.1_${platform}/usr/bin/redis-server`, 'Redis server v=6.0.1');
    await program(`cache/redis-server_7.1.0_sunos-mips/usr/bin/redis-server`, 'Redis server v=7.1.0');
    const unpacked = `cache/redis-server_7.4.0_${platform}/usr`;
    const file = await program(`${unpacked}/bin/redis-server`, 'Redis server v=7.4.0');
    const library = await program(`${unpacked}/lib/some/liblzf.so.1.5`, '');
    expect(await find()).toEqual({ file, version: '7.4.0', env: { LD_LIBRARY_PATH: join(library, '..') } });
    expect(lines).toEqual([]);
  });

  test('says what to install where nothing can be fetched, and leaves nothing half done', async () => {
    await expect(find()).rejects.toThrow(
      /^There is no Redis server on the PATH\. Install Redis 7 or newer.*REDIS_SERVER/,
    );
    expect(await readdir(join(directory, 'cache'))).toEqual([]);
  });
});
