import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  cacheKey,
  linkerFlags,
  MODULES,
  MODULES_DIRECTORY,
  type ModuleName,
  packagesOf,
  stagingVersion,
  versions,
} from './kubernetes-modules.ts';

describe('linkerFlags', () => {
  test('give Kubernetes the version from versions.json', () => {
    const flags = linkerFlags('kubernetes');
    expect(flags).toContain(`-X k8s.io/component-base/version.gitVersion=v${versions.kubernetes}`);
    expect(flags).toMatch(/-X k8s.io\/component-base\/version.gitMinor=\d+ /);
  });

  test('strip only for the others', () => expect(linkerFlags('etcd')).toBe('-s -w'));
});

test('stagingVersion turns the major version into 0, pre-releases included', () => {
  expect(stagingVersion('1.36.3')).toBe('0.36.3');
  expect(stagingVersion('1.37.0-rc.1')).toBe('0.37.0-rc.1');
});

test('cacheKey changes with each of its inputs and with where one ends', () => {
  const inputs = { goMod: 'ab', goSum: 'c', linkerFlags: '-s', platform: 'linux-x64', sources: [] };
  const keys = [
    inputs,
    { ...inputs, goMod: 'a', goSum: 'bc' },
    { ...inputs, linkerFlags: '-w' },
    { ...inputs, platform: 'linux-arm64' },
    { ...inputs, sources: ['package main'] },
  ].map(cacheKey);
  expect(new Set(keys).size).toBe(keys.length);
  expect(cacheKey({ ...inputs })).toBe(cacheKey(inputs));
});

const goMod = (module: ModuleName): Promise<string> => readFile(join(MODULES_DIRECTORY, module, 'go.mod'), 'utf8');

describe('the committed go.mod files agree with versions.json (else: npm run kubernetes:pin)', () => {
  const modules = (Object.keys(MODULES) as ModuleName[]).filter((module) => MODULES[module].path !== undefined);

  test.each(modules)('%s', async (module) => {
    const text = await goMod(module);
    const required = new RegExp(`^(?:require |\\s*)${MODULES[module].path} v(\\S+)`, 'm').exec(text)?.[1];
    expect(required).toBe(versions[module]);
    // Alone, or in a block; the requirements have a version after the path.
    const tools = [...text.matchAll(/^(?:tool |\t)([\w./-]+\/[\w./-]+)$/gm)].map((match) => match[1]);
    expect(new Set(tools)).toEqual(new Set(packagesOf(module)));
  });

  test('every staging module is replaced by the release of the same number', async () => {
    const text = await goMod('kubernetes');
    const replaced = [...text.matchAll(/^replace (\S+) => (\S+) v(\S+)$/gm)];
    expect(replaced.length).toBeGreaterThan(20);
    for (const [, from, to, version] of replaced) {
      expect({ from, version }).toEqual({ from: to, version: stagingVersion(versions.kubernetes) });
    }
    const unresolved = [...text.matchAll(/^\s*(k8s\.io\/\S+) v0\.0\.0 /gm)].map((match) => match[1]);
    const names = new Set(replaced.map((match) => match[1]));
    expect(unresolved.filter((name) => !names.has(name))).toEqual([]);
  });
});
