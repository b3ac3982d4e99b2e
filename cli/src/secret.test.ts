import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { addSecretOption, secretOf } from './secret.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rollcall-secret-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function secretBy(args: readonly string[], variable?: string): string | undefined {
  const command = addSecretOption(new Command()).parse(args, { from: 'user' });
  return secretOf(command, {
    env: { ROLLCALL_WEBHOOK_SECRET: variable },
    cwd: directory,
    now: () => new Date(0),
    out: () => undefined,
    err: () => undefined,
    hasTerminal: false,
    exitWith: () => undefined,
  });
}

it('comes from the variable, unless a file is named', () => {
  writeFileSync(join(directory, 'secret'), 'of the file');
  expect(secretBy([])).toBeUndefined();
  expect(secretBy([], '')).toBeUndefined();
  expect(secretBy([], 'of the variable')).toBe('of the variable');
  expect(secretBy(['--secret-file', 'secret'], 'of the variable')).toBe('of the file');
});

it.each([
  ['secret\n', 'secret'],
  ['secret\r\n', 'secret'],
  [' two words \n\n', ' two words \n'],
])('is the content of the file %j without the last line end', (content, secret) => {
  writeFileSync(join(directory, 'secret'), content);
  expect(secretBy(['--secret-file', 'secret'])).toBe(secret);
});

it('must be in the file', () => {
  writeFileSync(join(directory, 'empty'), '\n');
  expect(() => secretBy(['--secret-file', 'empty'])).toThrow('--secret-file: empty is empty');
  expect(() => secretBy(['--secret-file', 'missing'])).toThrow(/^--secret-file: .*no such file/);
});
