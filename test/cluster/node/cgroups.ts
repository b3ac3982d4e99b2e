import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil } from '@rollcall/local/wait.ts';

/**
 * The mounted hierarchies of cgroup version 1, none where there is version 2 only; with `all`, that
 * of version 2 beside them too, in which runc makes groups unasked.
 */
export async function cgroupHierarchies(which: 'v1' | 'all'): Promise<string[]> {
  const types = which === 'all' ? ['cgroup', 'cgroup2'] : ['cgroup'];
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  return mounts.split('\n').flatMap((line) => {
    const [, directory = '', type = ''] = line.split(' ');
    return types.includes(type) && directory.startsWith('/sys/fs/cgroup/') ? [directory] : [];
  });
}

/** Makes the group in every hierarchy. */
export async function createCgroups(name: string): Promise<void> {
  for (const hierarchy of await cgroupHierarchies('v1')) {
    const group = join(hierarchy, name);
    await mkdir(group, { recursive: true });
    // A new group may run nowhere until it is set otherwise.
    for (const setting of ['cpuset.cpus', 'cpuset.mems']) {
      const parent = join(hierarchy, setting);
      if (existsSync(parent)) await writeFile(join(group, setting), await readFile(parent));
    }
  }
}

/** Removes the group and all below it, once what ran in them has ended. */
export async function removeCgroups(name: string): Promise<void> {
  const areGone = async (): Promise<boolean> => {
    const groups = (await cgroupHierarchies('all')).map((hierarchy) => join(hierarchy, name));
    const gone = await Promise.all(groups.map(removeTree));
    return gone.every(Boolean);
  };
  await waitUntil(`the cgroups ${name} are gone`, areGone, { timeoutMs: 60_000 });
}

/** The files of a cgroup go with its directory and cannot be removed by themselves. */
async function removeTree(directory: string): Promise<boolean> {
  try {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (entry.isDirectory() && !(await removeTree(join(directory, entry.name)))) return false;
    }
    await rmdir(directory);
    return true;
  } catch {
    return !existsSync(directory);
  }
}
