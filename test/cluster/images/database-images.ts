import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { parse } from 'yaml';
import { runCommand } from '../node/command.ts';
import { findBuildah, openImageStore } from './buildah.ts';
import { debianRootProblem, unpackDebianRoot } from './debian-root.ts';
import { findOrBuild } from './image-cache.ts';
import { type ImageOptions, imageProblem } from './rollcall-image.ts';

interface Recipe {
  readonly release: string;
  readonly packages: readonly string[];
  /** Shell commands that finish the root, which is the working directory. */
  readonly finish: string;
  /** Script beside this one that the image starts with, instead of the public one's. */
  readonly entry?: string;
  /** What the Dockerfile says of the image beside its files. */
  readonly settings: readonly string[];
}

/** What the chart's scripts and probes, and the entry script, use beside the databases. */
const SHELL = ['bash', 'dash', 'coreutils', 'sed', 'grep', 'libc-bin'];

/**
 * Tools for setting up a machine, and the compiler for long queries, without which PostgreSQL does.
 */
const WITHOUT = /^(perl|lib.*-perl$|libperl|libllvm|libz3|locales$|libc-l10n$|openssl$|systemd|adduser$|debconf)/;

/**
 * Stand-ins for the public images of the databases: the same programs, users, paths and entry,
 * from Debian's packages.
 */
const RECIPES = {
  postgresql: {
    release: 'trixie',
    packages: ['postgresql-17', ...SHELL],
    finish: `
      rm -rf usr/lib/postgresql/17/lib/bitcode usr/lib/postgresql/17/lib/llvmjit.so
      sed -i "s/^#listen_addresses .*/listen_addresses = '*'/" usr/share/postgresql/17/postgresql.conf.sample
      install -d -o 999 -g 999 -m 1777 var/lib/postgresql/data
      install -d -o 999 -g 999 -m 3777 run/postgresql`,
    entry: 'postgres-entry.sh',
    settings: [
      'ENV PATH=/usr/local/bin:/usr/lib/postgresql/17/bin:/usr/bin PGDATA=/var/lib/postgresql/data LANG=C.UTF-8',
      'STOPSIGNAL SIGINT',
      'ENTRYPOINT ["docker-entrypoint.sh"]',
      'CMD ["postgres"]',
    ],
  },
  redis: {
    release: 'bookworm',
    packages: ['redis-server', ...SHELL],
    finish: 'install -d -o 999 -g 999 data',
    settings: ['ENV PATH=/usr/local/bin:/usr/bin', 'WORKDIR /data', 'CMD ["redis-server"]'],
  },
} as const satisfies Record<string, Recipe>;

type Database = keyof typeof RECIPES;
const DATABASES = ['postgresql', 'redis'] as const satisfies readonly Database[];

/** What the packages would have done on installation, as far as anybody notices. */
const COMMON_FINISH = `
  ln -sfn dash usr/bin/sh
  printf '%s\\n' root:x:0:0::/root:/bin/bash server:x:999:999::/data:/bin/bash > etc/passwd
  printf '%s\\n' root:x:0: server:x:999: > etc/group
  install -d -m 1777 tmp
  install -d run var
  rm -rf var/run
  ln -s /run var/run`;

/** Why the images cannot be built on this machine, in a sentence, or undefined when they can. */
export async function databaseProblem(): Promise<string | undefined> {
  return (await imageProblem()) ?? debianRootProblem();
}

/**
 * The archives with the images, under the very names that the chart has; built when they are not in
 * the cache.
 */
export async function findDatabaseImages(options: ImageOptions): Promise<string[]> {
  const { cacheDirectory, log } = options;
  const names = await chartImages();
  const directory = await findOrBuild(
    { cacheDirectory, kind: 'databases', key: await contentKey(names) },
    async (built) => {
      const started = performance.now();
      log('Building images of PostgreSQL and Redis');
      await buildArchives(built, names, options);
      log(`Images of PostgreSQL and Redis: built in ${Math.round((performance.now() - started) / 1000)} s`);
    },
  );
  return DATABASES.map((database) => archiveIn(directory, database));
}

type ImageNames = Readonly<Record<Database, string>>;

/** Full, as containerd would complete them. */
async function chartImages(): Promise<ImageNames> {
  const values: Record<Database, { readonly image: { readonly repository: string; readonly tag: string } }> = parse(
    await readFile(join(REPOSITORY, 'charts', 'rollcall', 'values.yaml'), 'utf8'),
  );
  const name = (database: Database): string => {
    const { repository, tag } = values[database].image;
    return `docker.io/library/${repository}:${tag}`;
  };
  return { postgresql: name('postgresql'), redis: name('redis') };
}

function archiveIn(directory: string, database: Database): string {
  return join(directory, `${database}.tar`);
}

async function contentKey(names: ImageNames): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([names, process.arch]));
  for (const name of ['database-images.ts', 'debian-root.ts', 'buildah.ts', 'postgres-entry.sh']) {
    hash.update(await readFile(join(import.meta.dirname, name)));
  }
  return hash.digest('hex').slice(0, 16);
}

async function buildArchives(directory: string, names: ImageNames, options: ImageOptions): Promise<void> {
  const { cacheDirectory, signal } = options;
  const work = await mkdtemp(join(cacheDirectory, '.roots-'));
  try {
    await Promise.all(DATABASES.map((database) => writeContext(join(work, database), RECIPES[database], signal)));
    const packages = await findBuildah(options);
    const downloads = join(cacheDirectory, 'downloads');
    const store = await openImageStore({ packages, directory: join(work, 'store'), downloads, signal });
    for (const database of DATABASES) {
      const name = names[database];
      const context = join(work, database);
      await store.build({ name, dockerfile: join(context, 'Dockerfile'), context });
      await store.save(name, archiveIn(directory, database));
    }
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** What the image is built from: a Dockerfile, and its root in `root`. */
async function writeContext(directory: string, recipe: Recipe, signal: AbortSignal | undefined): Promise<void> {
  const { release, packages, finish, entry, settings } = recipe;
  const root = join(directory, 'root');
  const workDirectory = join(directory, 'apt');
  await mkdir(workDirectory, { recursive: true });
  await unpackDebianRoot({ release, packages, without: WITHOUT, directory: root, workDirectory, signal });
  await rm(workDirectory, { recursive: true });
  await runCommand(['env', '--chdir', root, 'bash', '-euc', `${COMMON_FINISH}\n${finish}`], signal);
  if (entry !== undefined) {
    const script = join(root, 'usr/local/bin/docker-entrypoint.sh');
    await mkdir(dirname(script), { recursive: true });
    await copyFile(join(import.meta.dirname, entry), script);
    await chmod(script, 0o755);
  }
  await writeFile(join(directory, 'Dockerfile'), ['FROM scratch', 'COPY root /', ...settings, ''].join('\n'));
}
