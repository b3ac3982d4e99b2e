import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '@rollcall/local/services.ts';

const run = promisify(execFile);

/** As in the Dockerfile. */
const FOLDERS = ['clients', 'crds', 'fetcher', 'image', 'operator', 'platform', 'services'];

/**
 * Emits our sources as the image has them, so that what is measured is what runs.
 *
 * @param root does not exist yet.
 */
export async function createImageSources(root: string): Promise<void> {
  const modules = join(root, 'node_modules');
  const own = join(modules, '@rollcall');
  await mkdir(own, { recursive: true });
  for (const folder of FOLDERS) {
    await cp(join(REPOSITORY, folder), join(root, folder), { recursive: true, filter: isSource });
  }
  await cp(join(REPOSITORY, 'package.json'), join(root, 'package.json'));
  for (const name of await readdir(join(REPOSITORY, 'node_modules'))) {
    if (name !== '@rollcall') await symlink(join(REPOSITORY, 'node_modules', name), join(modules, name));
  }
  // Links of npm's, relative to where they are.
  const links = join(REPOSITORY, 'node_modules', '@rollcall');
  await cp(links, own, { recursive: true, verbatimSymlinks: true });
  const args = [join(REPOSITORY, 'tools', 'emit-javascript.ts'), ...FOLDERS.map((folder) => join(root, folder))];
  await run(process.execPath, args);
}

function isSource(path: string): boolean {
  return !path.endsWith('node_modules');
}
