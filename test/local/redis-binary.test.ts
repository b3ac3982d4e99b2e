import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { hasDebianTools } from '@rollcall/local/debian-packages.ts';
import { findExecutable } from '@rollcall/local/executables.ts';
import { findRedisBinary } from '@rollcall/local/redis-binary.ts';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';

const run = promisify(execFile);

/** What apt and dpkg call; a PATH with these alone has no Redis. */
const NEEDED = ['apt-get', 'dpkg', 'dpkg-deb', 'tar', 'gzip', 'xz', 'zstd', 'sh', 'rm', 'setpriv'];

interface PackageContent {
  readonly version: string;
  readonly depends?: string;
  /** Path and content; all are executable. */
  readonly files: Readonly<Record<string, string>>;
}

const server = (version: string): string => `#!/bin/sh\necho "Redis server v=${version} sha=00000000:0"\n`;

const redis = (version: string): Readonly<Record<string, PackageContent>> => ({
  'redis-server': { version: `5:${version}-1~test1`, depends: 'redis-tools', files: { 'etc/redis.conf': '' } },
  'redis-tools': {
    version: `5:${version}-1~test1`,
    depends: 'librollcall-test1',
    files: { 'usr/bin/redis-server': server(version) },
  },
  'librollcall-test1': { version: '1.0', files: { 'usr/lib/rollcall/librollcall.so.1': '' } },
});

// apt and dpkg are the machine's own; the archive is a folder, so that nothing depends on a
// network.
describe.runIf(await hasDebianTools())('findRedisBinary on a machine with apt', () => {
  let directory: string;
  let lines: string[];

  const find = () =>
    findRedisBinary({ cacheDirectory: join(directory, 'cache'), log: (line: string) => void lines.push(line) });

  /** Fills the archive. Like the machine's own lists, apt's lists know nothing of it yet. */
  async function offer(packages: Readonly<Record<string, PackageContent>>): Promise<void> {
    const archive = join(directory, 'archive');
    await mkdir(archive, { recursive: true });
    const index: string[] = [];
    for (const [name, { version, depends, files }] of Object.entries(packages)) {
      const root = await mkdtemp(join(directory, 'package-'));
      for (const [path, content] of Object.entries(files)) {
        await mkdir(dirname(join(root, path)), { recursive: true });
        await writeFile(join(root, path), content, { mode: 0o755 });
      }
      const control = [
        `Package: ${name}`,
        `Version: ${version}`,
        'Architecture: all',
        'Maintainer: nobody <n@invalid>',
      ];
      if (depends !== undefined) control.push(`Depends: ${depends}`);
      control.push('Description: for a test');
      await mkdir(join(root, 'DEBIAN'), { mode: 0o755 });
      await writeFile(join(root, 'DEBIAN', 'control'), `${control.join('\n')}\n`);
      const file = join(archive, `${name}.deb`);
      await run('dpkg-deb', ['--root-owner-group', '--build', root, file]);
      const sum = createHash('sha256')
        .update(await readFile(file))
        .digest('hex');
      const entry = [`Filename: ./${name}.deb`, `Size: ${(await stat(file)).size}`, `SHA256: ${sum}`];
      index.push([...control, ...entry].join('\n'));
    }
    await writeFile(join(archive, 'Packages'), `${index.join('\n\n')}\n`);
  }

  beforeEach(async () => {
    directory = await mkdtemp(join(inject('temporaryDirectory'), 'apt-'));
    lines = [];
    const programs = join(directory, 'programs');
    await mkdir(programs);
    for (const name of NEEDED) {
      const file = await findExecutable(name);
      if (file !== undefined) await symlink(file, join(programs, name));
    }
    await mkdir(join(directory, 'lists', 'partial'), { recursive: true });
    await writeFile(join(directory, 'sources.list'), `deb [trusted=yes] file:${directory}/archive ./\n`);
    const settings = [
      `Dir::Etc::sourcelist "${directory}/sources.list";`,
      'Dir::Etc::sourceparts "/dev/null";',
      `Dir::State::lists "${directory}/lists";`,
    ];
    await writeFile(join(directory, 'apt.conf'), `${settings.join('\n')}\n`);
    vi.stubEnv('APT_CONFIG', join(directory, 'apt.conf'));
    vi.stubEnv('PATH', programs);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('fetches the package and its libraries once, whoever asks, and finds them from then on', async () => {
    await offer(redis('7.4.9'));
    const [found, again] = await Promise.all([find(), find()]);
    const unpacked = join(directory, 'cache', `redis-server_7.4.9-1~test1_${process.platform}-${process.arch}`);
    expect(found).toEqual({
      file: join(unpacked, 'usr/bin/redis-server'),
      version: '7.4.9',
      env: { LD_LIBRARY_PATH: join(unpacked, 'usr/lib/rollcall') },
    });
    expect(again).toEqual(found);
    expect(lines.filter((line) => line.startsWith('Fetching'))).toHaveLength(1);
    expect(await readdir(join(directory, 'cache'))).toEqual([expect.stringMatching(/^redis-server_/)]);
    // The machine's own lists are as they were.
    expect(await readdir(join(directory, 'lists'))).toEqual(['partial']);

    lines = [];
    expect(await find()).toEqual(found);
    expect(lines).toEqual([]);
  });

  test('says what there is, what to do, and leaves nothing where there is none', async () => {
    await offer(redis('6.0.16'));
    const attempt = find();
    await expect(attempt).rejects.toThrow(/none could be fetched\. Install Redis 7 or newer.*REDIS_SERVER/);
    await expect(attempt).rejects.toThrow('redis-server 6.0.16-1~test1 is older than 7');
    expect(await readdir(join(directory, 'cache'))).toEqual([]);
  });
});
