import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runCommand } from '../node/command.ts';
import { openImageStore } from './buildah.ts';
import { findOrBuild } from './image-cache.ts';
import { sharedLibraries } from './images.ts';

/** The npm of the image that the Dockerfile names. */
const NPM = 'npm@12.2.0';

/** Names of the images, for the Dockerfile's arguments. */
export const NODE_BASES = {
  /** Node, npm and a shell. */
  NODE_IMAGE: 'registry.invalid/rollcall/node:build',
} as const;

export interface BaseOptions {
  /** Of `findBuildah`: with the static busybox. */
  readonly packages: string;
  readonly cacheDirectory: string;
  readonly downloads: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The directory of a store with a stand-in for the public image of Node, made at the first use:
 * this Node, the libraries that it has here, a shell, and npm, which asks the registry that npm
 * asks on this machine.
 */
export async function findNodeBases(options: BaseOptions): Promise<string> {
  const npmrc = await npmSettings();
  const key = createHash('sha256')
    .update(JSON.stringify([process.version, process.arch, NPM, npmrc]))
    .update(await readFile(import.meta.filename))
    .digest('hex')
    .slice(0, 16);
  return findOrBuild({ cacheDirectory: options.cacheDirectory, kind: 'bases', key }, async (directory) => {
    const roots = join(directory, 'roots');
    await writeRoots(roots, npmrc, options);
    const store = await openImageStore({ ...options, directory });
    const dockerfile = join(roots, 'Dockerfile');
    await store.build({ name: NODE_BASES.NODE_IMAGE, dockerfile, context: join(roots, 'build') });
    await rm(roots, { recursive: true });
  });
}

async function writeRoots(directory: string, npmrc: NpmSettings, { packages }: BaseOptions): Promise<void> {
  const build = join(directory, 'build');
  await Promise.all([addNode(build), addShell(build, join(packages, 'bin', 'busybox'))]);
  await runCommand([
    'npm',
    'install',
    '--global',
    '--no-fund',
    '--no-audit',
    '--prefix',
    join(build, 'usr/local'),
    NPM,
  ]);
  await addFile(join(build, 'usr/local/etc/npmrc'), npmrc.text);
  if (npmrc.authorities !== undefined) await addFile(join(build, AUTHORITIES), npmrc.authorities);
  await addFile(join(build, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  await addFile(join(build, 'etc/group'), 'root:x:0:\n');
  for (const name of ['root', 'tmp']) await mkdir(join(build, name));
  await writeFile(join(directory, 'Dockerfile'), 'FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/bin\n');
}

async function addNode(root: string): Promise<void> {
  const node = join(root, 'usr/local/bin/node');
  await mkdir(dirname(node), { recursive: true });
  await copyFile(await realpath(process.execPath), node);
  for (const library of await sharedLibraries(process.execPath)) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(library, join(root, library));
    await chmod(join(root, library), 0o755);
  }
}

async function addShell(root: string, busybox: string): Promise<void> {
  await mkdir(join(root, 'bin'), { recursive: true });
  await mkdir(join(root, 'usr/bin'), { recursive: true });
  await copyFile(busybox, join(root, 'bin/busybox'));
  const commands = (await runCommand([busybox, '--list']))
    .split('\n')
    .filter((name) => !['', 'busybox'].includes(name));
  for (const name of commands) await symlink('/bin/busybox', join(root, 'bin', name));
  await symlink('/bin/busybox', join(root, 'usr/bin/env'));
}

async function addFile(file: string, content: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}

const AUTHORITIES = 'etc/ssl/certs/ca-certificates.crt';

interface NpmSettings {
  readonly text: string;
  /**
   * PEM of the certificate authorities that this machine trusts beside those of Node, where it has
   * any.
   */
  readonly authorities: string | undefined;
}

async function npmSettings(): Promise<NpmSettings> {
  const registry = (await runCommand(['npm', 'config', 'get', 'registry'])).trim();
  const file = process.env['NODE_EXTRA_CA_CERTS'] ?? '';
  const authorities = file === '' ? undefined : await readFile(file, 'utf8');
  const lines = [`registry=${registry}`, ...(authorities === undefined ? [] : [`cafile=/${AUTHORITIES}`])];
  return { text: `${lines.join('\n')}\n`, authorities };
}
