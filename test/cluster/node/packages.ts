import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fetchDebianPackage, hasDebianTools } from '@rollcall/local/debian-packages.ts';
import { findExecutable } from '@rollcall/local/executables.ts';

/** What a node needs of the distribution. */
const PACKAGES = ['containerd', 'runc', 'containernetworking-plugins', 'iptables', 'nftables'] as const;
/**
 * What of it must be on the PATH, as the node's processes will look for it there, and where Debian
 * puts the CNI plugins.
 */
const PROGRAMS = ['containerd', 'ctr', 'runc', 'iptables', 'ip6tables', 'iptables-save', 'iptables-restore', 'nft'];
export const CNI_PLUGINS = '/usr/lib/cni';

/**
 * What must be on the PATH already: it is on every Debian, and in use before the node has mounts of
 * its own.
 */
export const HOST_PROGRAMS = ['ip', 'unshare', 'nsenter', 'setpriv', 'mount', 'openssl', 'ldd'];

/** Whether the distribution's packages are installed here. */
export async function hasPackages(): Promise<boolean> {
  const found = await Promise.all(PROGRAMS.map(findExecutable));
  return !found.includes(undefined) && existsSync(join(CNI_PLUGINS, 'bridge'));
}

export interface FetchPackagesOptions {
  readonly cacheDirectory: string;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The directory whose `usr` the node has to lay over its own, or undefined where all is installed.
 * Fetches the packages into the cache once, unpacked: nothing is installed on this machine, and no
 * daemon of theirs starts.
 *
 * @throws where there is no apt-get, or it cannot fetch them.
 */
export async function findPackages(options: FetchPackagesOptions): Promise<string | undefined> {
  if (await hasPackages()) return undefined;
  return fetchPackages({ ...options, name: 'packages', packages: PACKAGES, arrange });
}

interface FetchNamedOptions extends FetchPackagesOptions {
  /** What their directory in the cache begins with. */
  readonly name: string;
  readonly packages: readonly [string, ...string[]];
  /** Does what an installation would have done. */
  readonly arrange: (directory: string) => Promise<void>;
}

/**
 * The directory with the distribution's packages, unpacked at the first use.
 *
 * @throws as {@link findPackages}.
 */
export async function fetchPackages(options: FetchNamedOptions): Promise<string> {
  const { cacheDirectory, name, packages, arrange, log, signal } = options;
  // By what is in it: another choice of packages is fetched anew.
  const choice = hash('sha256', packages.join(' '), 'hex').slice(0, 8);
  const directory = join(cacheDirectory, `${name}-${process.arch}-${choice}`);
  if (existsSync(directory)) return directory;
  if (!(await hasDebianTools())) throw new Error(`Install ${packages.join(', ')}: there is no apt-get to fetch them`);
  log(`Fetching ${packages.join(', ')} with apt-get. First run only: unpacked in ${directory}, nothing is installed`);
  const temporary = join(cacheDirectory, `.${name}-${process.pid}`);
  const unpacked = join(temporary, 'unpacked');
  try {
    await mkdir(temporary, { recursive: true });
    await fetchDebianPackage({
      packages,
      directory: unpacked,
      workDirectory: join(temporary, 'apt'),
      signal,
    });
    await arrange(unpacked);
    await rename(unpacked, directory).catch((err: unknown) => {
      // Another process was faster.
      if (!existsSync(directory)) throw err;
    });
    return directory;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Does what an installation would have done: moves all below `usr`, and links the commands that
 * have alternatives.
 */
async function arrange(directory: string): Promise<void> {
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    const from = join(directory, name);
    if (!existsSync(from)) continue;
    await cp(from, join(directory, 'usr', name), { recursive: true, verbatimSymlinks: true });
    await rm(from, { recursive: true });
  }
  const sbin = join(directory, 'usr', 'sbin');
  const there = new Set(await readdir(sbin));
  for (const name of ['iptables', 'ip6tables']) {
    for (const command of [name, `${name}-save`, `${name}-restore`]) {
      if (!there.has(command)) await symlink('xtables-nft-multi', join(sbin, command));
    }
  }
}
