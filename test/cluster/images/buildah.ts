import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../node/command.ts';
import { type FetchPackagesOptions, fetchPackages } from '../node/packages.ts';

/**
 * What builds images, and a shell with the usual commands in one static file, for the base that
 * they are built on.
 */
const PACKAGES = ['buildah', 'busybox-static'] as const;

/**
 * The distribution's packages with buildah, unpacked in the cache.
 *
 * @throws where they cannot be fetched.
 */
export function findBuildah(options: FetchPackagesOptions): Promise<string> {
  return fetchPackages({ ...options, name: 'buildah', packages: PACKAGES, arrange: async () => undefined });
}

interface BuildOptions {
  /** Full, with registry and tag. */
  readonly name: string;
  readonly dockerfile: string;
  /** Directory with what is copied, less what its .dockerignore names. */
  readonly context: string;
  readonly arguments?: Readonly<Record<string, string>>;
}

/**
 * Images that are built one upon the other, without a daemon and without a registry. Its directory
 * can be removed at any time.
 */
export interface ImageStore {
  /**
   * Builds an image in which every time is 1970, from others that are there.
   *
   * @throws with what the build prints.
   */
  build(options: BuildOptions): Promise<void>;
  /** Writes a docker-archive with one of the images. */
  save(name: string, file: string): Promise<void>;
}

export interface StoreOptions {
  /** Of `findBuildah`. */
  readonly packages: string;
  /** Where the store has its files; not on an overlay. */
  readonly directory: string;
  /** Of a store whose images are there too, and stay as they are. */
  readonly beneath?: string;
  /** For what builds keep from one to the next, such as npm's downloads. */
  readonly downloads: string;
  readonly signal?: AbortSignal | undefined;
}

/** Its mounts and its processes end with it, however it ends. */
const NAMESPACES = [
  'unshare',
  '--mount',
  '--propagation=private',
  '--pid',
  '--fork',
  '--kill-child=SIGKILL',
  '--mount-proc',
];

/**
 * With the packages in the first argument laid over `/usr`, and the command in the others. buildah
 * starts itself again with an empty environment, and so must find its libraries in their usual
 * place.
 */
const WITH_PACKAGES = ['sh', '-euc', 'mount -t overlay -o "lowerdir=$1/usr:/usr" usr /usr; shift; exec "$@"', 'sh'];

/** Opens a store, which is empty where there is none. Needs root. */
export async function openImageStore(options: StoreOptions): Promise<ImageStore> {
  const { packages, directory, beneath, downloads, signal } = options;
  const file = (name: string): string => join(directory, name);
  await Promise.all([mkdir(file('images'), { recursive: true }), mkdir(downloads, { recursive: true })]);
  const settings = ['--root', file('images'), '--runroot', file('run'), '--storage-driver', 'overlay'];
  if (beneath !== undefined) settings.push('--storage-opt', `overlay.imagestore=${join(beneath, 'images')}`);
  settings.push('--registries-conf', join(packages, 'etc', 'containers', 'registries.conf'));
  const command = [
    ...NAMESPACES,
    ...WITH_PACKAGES,
    packages,
    'env',
    `TMPDIR=${downloads}`,
    `HOME=${directory}`,
    'buildah',
  ];
  const buildah = (...args: readonly string[]): Promise<string> =>
    runCommand([...command, ...settings, ...args], signal);
  const policy = ['--signature-policy', join(packages, 'etc', 'containers', 'policy.json')];
  return {
    build: async ({ name, dockerfile, context, arguments: values = {} }) => {
      const given = Object.entries(values).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]);
      const how = ['--isolation=chroot', '--pull-never', '--network=host', '--layers', '--format=docker'];
      await buildah('bud', ...policy, ...how, '--timestamp=0', ...given, '-t', name, '-f', dockerfile, context);
    },
    save: async (name, file) => {
      await buildah('push', ...policy, name, `docker-archive:${file}:${name}`);
    },
  };
}
