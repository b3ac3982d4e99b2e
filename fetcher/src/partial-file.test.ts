import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createPartialFile } from './partial-file.ts';

const hello = { algorithm: 'sha256', hex: hash('sha256', 'hello', 'hex') } as const;

let directory: string;
let output: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-partial-'));
  output = join(directory, 'shop');
});

afterEach(() => rm(directory, { recursive: true, force: true }));

test('what was written before starting over counts for nothing', async () => {
  await using partial = await createPartialFile(output, hello);
  await partial.append(Buffer.from('something longer'));
  expect(partial).toMatchObject({ size: 16 });
  await partial.startOver();
  expect(partial).toMatchObject({ size: 0 });
  await partial.append(Buffer.from('hel'));
  expect(partial.matches()).toBe(false);
  await partial.append(Buffer.from('lo'));
  expect(partial.matches()).toBe(true);
  expect(await readdir(directory)).toEqual([expect.stringMatching(/^\.rollcall-fetch-.*\.part$/)]);
  await partial.publish();
  expect(await readdir(directory)).toEqual(['shop']);
  expect(await readFile(output, 'utf8')).toBe('hello');
});

test('leftovers of the dead are removed, and nothing else', async () => {
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  const leftover = await leave();
  const [prefix = '', , ...rest] = leftover.split(/\.(\d+)\./);
  const names = {
    own: leftover,
    dead: `${prefix}.${dead}.${rest.join('')}`,
    alive: `${prefix}.${process.ppid}.${rest.join('')}`,
    elsewhere: leftover.replace(/-[0-9a-f]{16}\./, '-0123456789abcdef.'),
    other: 'shop.part',
  };
  for (const name of Object.values(names)) await writeFile(join(directory, name), 'x');
  await using partial = await createPartialFile(output, hello);
  expect(partial.size).toBe(0);
  const left = await readdir(directory);
  expect(left).toHaveLength(4);
  expect(left).toEqual(expect.arrayContaining([names.alive, names.elsewhere, names.other]));
});

/** The name of a partial file, as a killed fetcher would leave it. */
async function leave(): Promise<string> {
  await using partial = await createPartialFile(output, hello);
  expect(partial.size).toBe(0);
  const [name = ''] = await readdir(directory);
  return name;
}

test('where the directory is missing, the error says which file cannot be written', async () => {
  const missing = join(directory, 'missing', 'shop');
  await expect(createPartialFile(missing, hello)).rejects.toMatchObject({
    code: 'FAILED',
    message: `Cannot write ${missing}: no such file or directory`,
  });
});

test('a directory at the path of the file stays', async () => {
  await mkdir(output);
  await using partial = await createPartialFile(output, hello);
  await partial.append(Buffer.from('hello'));
  await expect(partial.publish()).rejects.toMatchObject({ code: 'FAILED' });
  expect(await readdir(directory)).toContain('shop');
});
