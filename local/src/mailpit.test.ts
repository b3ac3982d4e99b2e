import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findMailpit } from './mailpit.ts';

async function emptyDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-mailpit-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

test('where there is neither Mailpit nor Go, it is a problem that says what to install, and no failure', async () => {
  const cacheDirectory = await emptyDirectory();
  vi.stubEnv('PATH', cacheDirectory);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await findMailpit({ cacheDirectory, log: () => undefined })).toEqual({
    problem: expect.stringMatching(
      /^The mail server Mailpit is built from source and Go is not installed\. Install it/,
    ),
  });
});

test('a stop while it is built or waited for is no problem of Mailpit', async () => {
  const cacheDirectory = await emptyDirectory();
  const signal = AbortSignal.abort(new Error('Ctrl-C'));
  await expect(findMailpit({ cacheDirectory, log: () => undefined, signal })).rejects.toThrow('Ctrl-C');
});
