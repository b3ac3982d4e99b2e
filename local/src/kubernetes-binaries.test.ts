import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultCacheDirectory, findKubernetesBinaries } from './kubernetes-binaries.ts';

test('defaultCacheDirectory follows XDG_CACHE_HOME, else ~/.cache', () => {
  expect(defaultCacheDirectory({ XDG_CACHE_HOME: '/var/cache' })).toBe('/var/cache/rollcall/kubernetes');
  expect(defaultCacheDirectory({ XDG_CACHE_HOME: '' })).toBe(join(homedir(), '.cache/rollcall/kubernetes'));
});

describe('findKubernetesBinaries with KUBEBUILDER_ASSETS', () => {
  let assetsDirectory: string;
  const lines: string[] = [];
  const options = () => ({ assetsDirectory, cacheDirectory: '/nonexistent', log: (line: string) => lines.push(line) });

  beforeEach(async () => {
    assetsDirectory = await mkdtemp(join(tmpdir(), 'rollcall-assets-'));
  });
  afterEach(() => rm(assetsDirectory, { recursive: true }));

  test('uses what is there, without a word', async () => {
    const file = join(assetsDirectory, 'etcd');
    await writeFile(file, '');
    await chmod(file, 0o755);
    expect(await findKubernetesBinaries(['etcd'], options())).toEqual({ etcd: file });
    expect(lines).toEqual([]);
  });

  test('says what is missing', async () => {
    await expect(findKubernetesBinaries(['kube-apiserver'], options())).rejects.toThrow(
      `KUBEBUILDER_ASSETS is ${assetsDirectory}, but there is no executable kube-apiserver in it`,
    );
  });
});
