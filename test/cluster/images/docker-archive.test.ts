import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../node/command.ts';
import { type Image, type Layer, withDirectories, writeDockerArchive } from './docker-archive.ts';
import { parseLdd } from './images.ts';

describe('writeDockerArchive', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'rollcall-archive-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  test('writes what tar reads, each layer once, under the digest that it has', async () => {
    const source = join(directory, 'source');
    await writeFile(source, 'x'.repeat(1000));
    const base: Layer = [
      { path: 'usr/bin/program', content: { file: source }, executable: true },
      { path: 'etc/name', content: Buffer.from('shop') },
      { path: 'bin', target: 'usr/bin' },
    ];
    const own: Layer = [{ path: 'empty', content: Buffer.alloc(0) }];
    const images: Image[] = ['v1', 'v2'].map((tag) => ({
      name: `registry.invalid/shop:${tag}`,
      layers: tag === 'v1' ? [base] : [base, own],
      config: { Entrypoint: ['/usr/bin/program'], Env: [`VERSION=${tag}`] },
    }));
    const archive = join(directory, 'images.tar');
    await writeDockerArchive(archive, images);
    await runCommand(['tar', '--extract', '--file', archive, '--directory', directory]);
    const manifest: { Config: string; RepoTags: string[]; Layers: string[] }[] = JSON.parse(
      await readFile(join(directory, 'manifest.json'), 'utf8'),
    );
    expect(manifest.map(({ RepoTags, Layers }) => ({ RepoTags, Layers }))).toEqual([
      { RepoTags: ['registry.invalid/shop:v1'], Layers: ['layer-0.tar'] },
      { RepoTags: ['registry.invalid/shop:v2'], Layers: ['layer-0.tar', 'layer-1.tar'] },
    ]);
    const config = JSON.parse(await readFile(join(directory, manifest[1]?.Config ?? ''), 'utf8'));
    const layer = await readFile(join(directory, 'layer-0.tar'));
    expect(config.config).toMatchObject({ Env: ['VERSION=v2'] });
    expect(config.rootfs.diff_ids[0]).toBe(`sha256:${createHash('sha256').update(layer).digest('hex')}`);
    const listing = await runCommand(['tar', '--list', '--verbose', '--file', join(directory, 'layer-0.tar')]);
    expect(listing.split('\n').map((line) => line.split(/\s+/).toSpliced(3, 2).join(' '))).toEqual([
      'lrwxrwxrwx 0/0 0 bin -> usr/bin',
      'drwxr-xr-x 0/0 0 etc/',
      '-rw-r--r-- 0/0 4 etc/name',
      'drwxr-xr-x 0/0 0 usr/',
      'drwxr-xr-x 0/0 0 usr/bin/',
      '-rwxr-xr-x 0/0 1000 usr/bin/program',
      '',
    ]);
  });
});

test('withDirectories names every directory before what is in it', () => {
  const content = Buffer.from('');
  const layer = withDirectories([
    { path: 'a/b/c', content },
    { path: 'a/b.d', content },
  ]);
  expect(layer.map(({ path }) => path)).toEqual(['a', 'a/b', 'a/b.d', 'a/b/c']);
});

test('parseLdd reads the libraries and the loader, and not what the kernel provides', () => {
  const output = [
    '\tlinux-vdso.so.1 (0x00007ffd2d5f2000)',
    '\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f1)',
    '\t/lib64/ld-linux-x86-64.so.2 (0x00007f2)',
    '',
  ].join('\n');
  expect(parseLdd(output)).toEqual(['/lib/x86_64-linux-gnu/libdl.so.2', '/lib64/ld-linux-x86-64.so.2']);
});
