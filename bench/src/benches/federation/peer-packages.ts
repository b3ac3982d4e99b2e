import { hash } from 'node:crypto';
import { cp, mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { withLock } from '@rollcall/local/file-lock.ts';
import { runProgram } from '@rollcall/local/processes.ts';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';

/** Where the peers are installed, or why they are not. */
export type PeerPackages = { readonly directory: string } | { readonly problem: string };

const SOURCE = join(REPOSITORY, 'bench', 'peers', 'federation');
const FILES = ['package.json', 'package-lock.json'];

/** Installs the peers into the cache, once (docs/decisions/0498). */
export async function findPeerPackages(env: NodeJS.ProcessEnv, log: (line: string) => void): Promise<PeerPackages> {
  try {
    const lock = await readFile(join(SOURCE, 'package-lock.json'), 'utf8');
    const cache = cacheDirectory(env, 'federation-peers');
    const directory = join(cache, hash('sha256', lock).slice(0, 16));
    await withLock(cache, {}, async () => {
      if (!(await isDirectory(directory))) await install(directory, log);
    });
    return { directory };
  } catch (err) {
    return { problem: errorMessage(err) };
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** What is there is whole: it gets its name at the end. */
async function install(directory: string, log: (line: string) => void): Promise<void> {
  log('federation: installing its peers, the first time only');
  const unfinished = `${directory}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true });
  for (const file of FILES) await cp(join(SOURCE, file), join(unfinished, file));
  // Nothing of theirs is run but the gateways.
  await runProgram(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: unfinished });
  await rename(unfinished, directory);
}
