import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readAuthorization } from './credentials.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-credentials-'));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function authorization(files: Readonly<Record<string, string>>): Promise<string> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return readAuthorization(directory);
}

test.each([
  { files: { token: 'abc.def' }, header: 'Bearer abc.def' },
  { files: { token: 'abc\r\n' }, header: 'Bearer abc' },
  { files: { token: 'abc', username: 'ada', password: 'pw' }, header: 'Bearer abc' },
  { files: { username: 'ada\n', password: 'p:w\n' }, header: `Basic ${btoa('ada:p:w')}` },
  { files: { username: 'ada', password: '' }, header: `Basic ${btoa('ada:')}` },
])('$files: $header', async ({ files, header }) => {
  expect(await authorization(files)).toBe(header);
});

test.each([
  { files: {} },
  { files: { username: 'ada' } },
  { files: { password: 's3cret' } },
  { files: { token: '' } },
  { files: { token: 's3cret\nX-Other: 1' } },
  { files: { token: 's3crét' } },
  { files: { username: 'a:da', password: 's3cret' } },
  { files: { username: 'ada', password: 's3cret\nx' } },
])('$files: unusable', async ({ files }) => {
  const error = await authorization(files).catch((error: unknown) => error);
  expect(error).toMatchObject({ code: 'USAGE' });
  expect(String(error)).not.toContain('s3cr');
});
