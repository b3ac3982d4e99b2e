import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { type Image, type Layer, writeDockerArchive } from './docker-archive.ts';
import type { TarEntry } from './tar.ts';

const run = promisify(execFile);

/**
 * Repository of the test program; nobody can pull from a registry of that name, whatever a node has
 * for its DNS.
 */
export const APP_REPOSITORY = 'registry.invalid/rollcall/e2e-app';

/** The tags of the test program and what is special about each; see app/server.ts. */
const APP_TAGS: Readonly<Record<string, readonly string[]>> = {
  v1: [],
  v2: [],
  v3: [],
  crash: ['APP_FAULT=crash'],
  unready: ['APP_FAULT=unready'],
  errors: ['APP_FAULT=errors'],
};

/** An image of the Traefik that traefik/binary.ts finds. */
export const TRAEFIK_IMAGE = 'registry.invalid/rollcall/traefik:1';

/**
 * Writes an archive with the test program in all its versions: this Node, the libraries that it
 * needs, and the scripts.
 *
 * @param traefik a static executable, to be an image of its own beside them.
 */
export async function writeTestImages(file: string, traefik?: string): Promise<void> {
  const runtime = await nodeLayer(process.execPath);
  const scripts: Layer = [
    { path: 'app/package.json', content: Buffer.from('{"type":"module"}') },
    await script('server.ts'),
    await script('load.ts'),
    await script('artifacts.ts'),
    await script('member.ts'),
    ...(await clientLibrary()),
    await script('network.ts'),
  ];
  const images = Object.entries(APP_TAGS).map(
    ([tag, env]): Image => ({
      name: `${APP_REPOSITORY}:${tag}`,
      layers: [runtime, scripts],
      config: { Entrypoint: ['/bin/node', '/app/server.ts'], Env: [`APP_VERSION=${tag}`, ...env], User: '65534' },
    }),
  );
  if (traefik !== undefined) images.push(staticImage(TRAEFIK_IMAGE, traefik));
  await writeDockerArchive(file, images);
}

async function script(name: string): Promise<TarEntry> {
  return { path: `app/${name}`, content: await readFile(join(import.meta.dirname, '..', 'app', name)) };
}

/**
 * Our client library and the one package that it needs, where Node looks for them; it strips types
 * outside of `node_modules` alone.
 */
async function clientLibrary(): Promise<Layer> {
  const folder = 'clients/typescript';
  const parser = 'node_modules/eventsource-parser';
  return [
    ...(await filesIn(folder, 'package.json')),
    ...(await filesIn(`${folder}/src`, '.ts')),
    ...(await filesIn(parser, 'package.json')),
    ...(await filesIn(`${parser}/dist`, '.js')),
    { path: 'app/node_modules/@rollcall/client', target: `../../${folder}` },
  ];
}

async function filesIn(folder: string, ending: string): Promise<TarEntry[]> {
  const names = await readdir(join(REPOSITORY, folder));
  return names
    .filter((name) => name.endsWith(ending) && !name.endsWith('.test.ts'))
    .map((name) => ({ path: `app/${folder}/${name}`, content: { file: join(REPOSITORY, folder, name) } }));
}

export const PAUSE_IMAGE = 'registry.invalid/rollcall/pause:1';
export const COREDNS_IMAGE = 'registry.invalid/rollcall/coredns:1';

/** Writes an archive with what every node needs: static binaries, alone. */
export async function writeNodeImages(
  file: string,
  binaries: Readonly<Record<'pause' | 'coredns', string>>,
): Promise<void> {
  await writeDockerArchive(file, [
    staticImage(PAUSE_IMAGE, binaries.pause),
    staticImage(COREDNS_IMAGE, binaries.coredns),
  ]);
}

function staticImage(name: string, binary: string): Image {
  return {
    name,
    layers: [[{ path: 'main', content: { file: binary }, executable: true }]],
    config: { Entrypoint: ['/main'] },
  };
}

async function nodeLayer(node: string): Promise<Layer> {
  const libraries = await sharedLibraries(node);
  return [
    { path: 'bin/node', content: { file: node }, executable: true },
    ...libraries.map((file) => ({ path: file.slice(1), content: { file }, executable: true })),
  ];
}

/** The paths under which a program looks for its shared libraries, the loader's own included. */
export async function sharedLibraries(program: string): Promise<string[]> {
  const { stdout } = await run('ldd', [program]);
  const libraries = parseLdd(stdout);
  // Before glibc 2.34 these were loaded by name only, at the first look-up of a host.
  const [libc] = libraries.filter((file) => /\/libc\.so/.test(file));
  for (const name of ['libnss_dns.so.2', 'libnss_files.so.2', 'libresolv.so.2']) {
    const file = join(dirname(libc ?? '/lib/libc'), name);
    if (!libraries.includes(file) && existsSync(file)) libraries.push(file);
  }
  return libraries;
}

/** The files in what `ldd` prints. */
export function parseLdd(output: string): string[] {
  return [...output.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].map((match) => match[1] ?? '');
}
