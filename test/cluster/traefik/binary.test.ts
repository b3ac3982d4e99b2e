import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findExecutable } from '@rollcall/local/executables.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCommand } from '../node/command.ts';
import { findTraefik } from './binary.ts';

let directory: string;
const lines: string[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-traefik-'));
  lines.length = 0;
});
afterEach(() => rm(directory, { recursive: true }));

const find = (env: NodeJS.ProcessEnv, signal?: AbortSignal) =>
  findTraefik({
    env: { E2E_TRAEFIK_SOURCE: join(directory, 'source'), XDG_CACHE_HOME: join(directory, 'cache'), ...env },
    log: (line) => lines.push(line),
    signal,
  });

test('TRAEFIK_BIN goes before all else, and must be executable', async () => {
  expect(await find({ TRAEFIK_BIN: process.execPath })).toEqual({ file: process.execPath });
  await expect(find({ TRAEFIK_BIN: import.meta.filename })).rejects.toThrow('which is no executable');
});

test('without it and without a module to build it from, it says so', async () => {
  expect(await find({ TRAEFIK_BIN: '' })).toEqual({
    problem: expect.stringContaining(`no Go module to build Traefik from is in ${join(directory, 'source')}`),
  });
  expect(await readdir(directory)).toEqual([]);
});

/**
 * Not Traefik, which takes minutes, but a module that is built as it is: of a main package in a
 * module that is required.
 */
describe.skipIf((await findExecutable('go')) === undefined)('a build', () => {
  beforeEach(async () => {
    const module = 'github.com/traefik/traefik/v3';
    await write('go.mod', `module a\n\ngo 1.21\n\nrequire ${module} v3.0.1\n\nreplace ${module} => ./standin\n`);
    await write('standin/go.mod', `module ${module}\n\ngo 1.21\n`);
    await write('standin/cmd/traefik/main.go', program('first'));
  });

  test('is made once, whoever asks, and again when a file has changed', async () => {
    const [first, second] = await Promise.all([find({}), find({})]);
    expect(first).toEqual(second);
    expect(lines.filter((line) => line.startsWith('Building traefik (Traefik 3.0.1)'))).toHaveLength(1);
    expect(await runCommand([fileOf(first)])).toBe('first');

    lines.length = 0;
    expect(await find({})).toEqual(first);
    expect(lines).toEqual([]);

    await write('standin/cmd/traefik/main.go', program('second'));
    expect(await runCommand([fileOf(await find({}))])).toBe('second');
  });

  test('that fails is an error, and one that takes too long is none', async () => {
    await write('standin/cmd/traefik/main.go', 'package main');
    await expect(find({})).rejects.toThrow('function main is undeclared');
    expect(await find({}, AbortSignal.abort(new Error('no time')))).toEqual({
      problem: expect.stringContaining('no time'),
    });
  });
});

async function write(path: string, content: string): Promise<void> {
  const file = join(directory, 'source', path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}

function program(text: string): string {
  return `package main\n\nimport "os"\n\nfunc main() { os.Stdout.WriteString("${text}") }\n`;
}

function fileOf(found: Awaited<ReturnType<typeof findTraefik>>): string {
  if ('problem' in found) throw new Error(found.problem);
  return found.file;
}
