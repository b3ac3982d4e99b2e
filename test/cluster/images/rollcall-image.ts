import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasDebianTools } from '@rollcall/local/debian-packages.ts';
import { findExecutable } from '@rollcall/local/executables.ts';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { findBuildah, type ImageStore, openImageStore } from './buildah.ts';
import { findOrBuild } from './image-cache.ts';
import { findNodeBases, NODE_BASES } from './node-base.ts';

/** The image of the Dockerfile, as it is in the working tree. */
export const ROLLCALL_IMAGE = 'registry.invalid/rollcall/rollcall:e2e';

/**
 * The same with one more setting: whoever the cluster's certificate authority vouches for is
 * trusted.
 */
export const TRUSTING_IMAGE = 'registry.invalid/rollcall/rollcall:e2e-trusting';

const TRUSTING_DOCKERFILE = `FROM ${ROLLCALL_IMAGE}
ENV NODE_EXTRA_CA_CERTS=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt
`;

/** Why the image cannot be built on this machine, in a sentence, or undefined when it can. */
export async function imageProblem(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'building the image needs Linux';
  if (process.getuid?.() !== 0) return 'building the image needs root';
  for (const program of ['unshare', 'ldd', 'npm']) {
    if ((await findExecutable(program)) === undefined) return `building the image needs ${program} on the PATH`;
  }
  return (await hasDebianTools()) ? undefined : 'building the image needs apt-get, to fetch buildah';
}

export interface ImageOptions {
  readonly cacheDirectory: string;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Paths of docker-archives. */
export interface RollcallArchives {
  readonly rollcall: string;
  readonly trusting: string;
}

/**
 * The archives with the images, built when they are not in the cache, where they are found by the
 * content of what they are made of.
 */
export async function findRollcallImages(options: ImageOptions): Promise<RollcallArchives> {
  const { cacheDirectory, log } = options;
  const directory = await findOrBuild({ cacheDirectory, kind: 'rollcall', key: await contentKey() }, async (built) => {
    const started = performance.now();
    log("Building Rollcall's image");
    await buildArchives(built, options);
    log(`Rollcall's image: built in ${Math.round((performance.now() - started) / 1000)} s`);
  });
  return archivesIn(directory);
}

/** Builds the image anew, in an empty store, and writes the archive. */
export async function buildRollcallImage(archive: string, options: ImageOptions): Promise<void> {
  await withImage(options, (store) => store.save(ROLLCALL_IMAGE, archive));
}

async function buildArchives(directory: string, options: ImageOptions): Promise<void> {
  const archives = archivesIn(directory);
  await withImage(options, async (store) => {
    await store.save(ROLLCALL_IMAGE, archives.rollcall);
    await buildTrusting(store, directory);
    await store.save(TRUSTING_IMAGE, archives.trusting);
  });
}

async function withImage(options: ImageOptions, use: (store: ImageStore) => Promise<void>): Promise<void> {
  const { cacheDirectory, signal } = options;
  await mkdir(cacheDirectory, { recursive: true });
  const common = { packages: await findBuildah(options), downloads: join(cacheDirectory, 'downloads'), signal };
  const beneath = await findNodeBases({ ...common, cacheDirectory });
  const directory = await mkdtemp(join(cacheDirectory, '.store-'));
  try {
    const store = await openImageStore({ ...common, directory, beneath });
    const dockerfile = join(REPOSITORY, 'Dockerfile');
    await store.build({ name: ROLLCALL_IMAGE, dockerfile, context: REPOSITORY, arguments: NODE_BASES });
    await use(store);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function buildTrusting(store: ImageStore, directory: string): Promise<void> {
  const context = join(directory, 'trusting');
  const dockerfile = join(context, 'Dockerfile');
  await mkdir(context);
  await writeFile(dockerfile, TRUSTING_DOCKERFILE);
  await store.build({ name: TRUSTING_IMAGE, dockerfile, context });
  await rm(context, { recursive: true });
}

function archivesIn(directory: string): RollcallArchives {
  return { rollcall: join(directory, 'rollcall.tar'), trusting: join(directory, 'trusting.tar') };
}

/**
 * A digest of all that may be in the image, and of how it is built. What .dockerignore excludes
 * beside does no harm here.
 */
async function contentKey(): Promise<string> {
  const ignore = await readFile(join(REPOSITORY, '.dockerignore'), 'utf8');
  const included = [...ignore.matchAll(/^!(.+)$/gm)].map((match) => match[1] ?? '');
  const files = [
    ...(await Promise.all(included.map((path) => filesBelow(join(REPOSITORY, path))))).flat(),
    join(REPOSITORY, 'Dockerfile'),
    ...['rollcall-image.ts', 'node-base.ts', 'buildah.ts'].map((name) => join(import.meta.dirname, name)),
  ];
  const hash = createHash('sha256').update(ignore).update(process.version);
  for (const file of files.sort()) {
    const content = await readFile(file);
    hash.update(`\n${file.slice(REPOSITORY.length)} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}

async function filesBelow(path: string): Promise<string[]> {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const kept = entries.filter(({ name }) => name !== 'node_modules' && !name.endsWith('.test.ts'));
  return (await Promise.all(kept.map(({ name }) => filesBelow(join(path, name))))).flat();
}
