import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { findExecutable } from '@rollcall/local/executables.ts';
import { installCrds, type KubectlTarget, runKubectl } from '@rollcall/local/kubectl.ts';
import { defaultCacheDirectory, findKubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { databaseProblem, findDatabaseImages } from '../images/database-images.ts';
import { APP_REPOSITORY, TRAEFIK_IMAGE, writeTestImages } from '../images/images.ts';
import { findRollcallImages, imageProblem, ROLLCALL_IMAGE } from '../images/rollcall-image.ts';
import { runCommand } from '../node/command.ts';
import { NODE_BINARIES, startNode } from '../node/node.ts';
import { findPackages } from '../node/packages.ts';
import { nodeProblem } from '../node/requirements.ts';
import { findTraefik } from '../traefik/binary.ts';

/** What tests have to know of the cluster they run on. */
export interface ClusterFacts {
  /** given: by E2E_KUBECONFIG; kind: made with it; node: our own, see node/node.ts. */
  readonly kind: 'given' | 'kind' | 'node';
  readonly kubeconfigPath: string;
  /** Paths of the executables. */
  readonly kubectl: string;
  readonly helm: string;
  /** Repository of the test program's images; its tags are in images/images.ts. */
  readonly appRepository: string;
  /**
   * Rollcall's own image, of the working tree unless E2E_ROLLCALL_IMAGE names another; undefined
   * where it cannot be built.
   */
  readonly rollcallImage: string | undefined;
  /** Whether pods can have the images of PostgreSQL and Redis that the chart names. */
  readonly databaseImages: boolean;
  /**
   * Image of Traefik, for what needs an Ingress controller or a Gateway; undefined where there is
   * none.
   */
  readonly traefikImage: string | undefined;
  /** Address of a node whose ports can be reached from here; undefined where they cannot. */
  readonly nodeAddress: string | undefined;
}

export interface OpenCluster extends AsyncDisposable {
  readonly facts: ClusterFacts;
}

export interface ClusterOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
}

/**
 * A cluster with real pods and Rollcall's custom resource definitions: the one of E2E_KUBECONFIG,
 * else one made with kind where Docker works, else a node of our own.
 *
 * @returns why there is none, in a sentence, where neither is possible.
 * @throws when what is possible fails.
 */
export async function openCluster(options: ClusterOptions): Promise<OpenCluster | string> {
  const given = options.env['E2E_KUBECONFIG'];
  if (given !== undefined && given !== '') return openGiven(given, options);
  if (await canUseKind()) return openKind(options);
  const problem = await nodeProblem();
  if (problem === undefined) return openNode(options);
  return `There is no cluster to test on: E2E_KUBECONFIG is not set, kind or Docker is missing, and ${problem}`;
}

function binaryOptions({ env, log }: ClusterOptions): Parameters<typeof findKubernetesBinaries>[1] {
  return { assetsDirectory: env['KUBEBUILDER_ASSETS'], cacheDirectory: defaultCacheDirectory(env), log };
}

/**
 * How long the tests wait for Traefik to be built; on a machine with two processors to itself it
 * takes a third of that.
 */
const TRAEFIK_TIMEOUT_MS = 15 * 60_000;

/**
 * A static executable of Traefik, without which the tests that need an Ingress or a Gateway are
 * skipped.
 */
async function traefikBinary({ env, log }: ClusterOptions): Promise<string | undefined> {
  const found = await findTraefik({ env, log, signal: AbortSignal.timeout(TRAEFIK_TIMEOUT_MS) });
  if ('file' in found) return found.file;
  log(`Skipped: what needs an Ingress or a Gateway, because ${found.problem}`);
  return undefined;
}

/**
 * Fetches and builds what `openCluster` needs for a node of our own beside what comes from Go
 * modules; nothing where there can be none.
 */
export async function prepareNode(options: ClusterOptions): Promise<void> {
  if ((await nodeProblem()) !== undefined) return;
  await findPackages({ cacheDirectory: cacheDirectory(options.env, 'node'), log: options.log });
  await databaseArchives(options);
  await rollcallArchives(options);
}

/** Archives with Rollcall's image, or none where it cannot be built. */
async function rollcallArchives({ env, log }: ClusterOptions): Promise<readonly string[]> {
  const problem = await imageProblem();
  if (problem === undefined) {
    return Object.values(await findRollcallImages({ cacheDirectory: cacheDirectory(env, 'image'), log }));
  }
  log(`Without Rollcall's own image: ${problem}`);
  return [];
}

/** Archives with stand-ins for the databases' public images, or none where they cannot be built. */
async function databaseArchives({ env, log }: ClusterOptions): Promise<readonly string[]> {
  const problem = await databaseProblem();
  if (problem === undefined) return findDatabaseImages({ cacheDirectory: cacheDirectory(env, 'image'), log });
  log(`Without images of PostgreSQL and Redis: ${problem}`);
  return [];
}

function nameOfBuilt(archives: readonly string[]): string | undefined {
  return archives.length === 0 ? undefined : ROLLCALL_IMAGE;
}

/**
 * A cluster that somebody else has made. It must have the images of the test program, or be able to
 * pull them.
 */
async function openGiven(kubeconfigPath: string, options: ClusterOptions): Promise<OpenCluster> {
  const { kubectl, helm } = await findKubernetesBinaries(['kubectl', 'helm'], binaryOptions(options));
  await installCrds({ kubectl, kubeconfigPath });
  const appRepository = options.env['E2E_APP_REPOSITORY'] ?? APP_REPOSITORY;
  const rollcallImage = options.env['E2E_ROLLCALL_IMAGE'] || undefined;
  const traefikImage = options.env['E2E_TRAEFIK_IMAGE'] || undefined;
  if (traefikImage === undefined) {
    options.log('Skipped: what needs an Ingress or a Gateway, because E2E_TRAEFIK_IMAGE names no image of Traefik');
  }
  return {
    facts: {
      kind: 'given',
      kubeconfigPath,
      kubectl,
      helm,
      appRepository,
      rollcallImage,
      databaseImages: true,
      traefikImage,
      nodeAddress: options.env['E2E_NODE_ADDRESS'] || undefined,
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function canUseKind(): Promise<boolean> {
  if ((await findExecutable('kind')) === undefined || (await findExecutable('docker')) === undefined) return false;
  return runCommand(['docker', 'info']).then(
    () => true,
    () => false,
  );
}

async function openKind(options: ClusterOptions): Promise<OpenCluster> {
  const { kubectl, helm } = await findKubernetesBinaries(['kubectl', 'helm'], binaryOptions(options));
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-kind-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const kubeconfigPath = join(directory, 'kubeconfig');
  const name = `rollcall-e2e-${process.pid}`;
  const config = join(import.meta.dirname, '..', 'kind.yaml');
  stack.defer(async () => {
    await runCommand(['kind', 'delete', 'cluster', '--name', name, '--kubeconfig', kubeconfigPath]);
  });
  const where = ['--name', name, '--kubeconfig', kubeconfigPath];
  await runCommand(['kind', 'create', 'cluster', ...where, '--config', config, '--wait', '180s']);
  const archive = join(directory, 'images.tar');
  const traefik = await traefikBinary(options);
  await writeTestImages(archive, traefik);
  const archives = await rollcallArchives(options);
  for (const each of [archive, ...archives]) await runCommand(['kind', 'load', 'image-archive', each, '--name', name]);
  await installCrds({ kubectl, kubeconfigPath });
  const nodeAddress = await kindAddress({ kubectl, kubeconfigPath });
  const kept = stack.move();
  return {
    facts: {
      kind: 'kind',
      kubeconfigPath,
      kubectl,
      helm,
      appRepository: APP_REPOSITORY,
      rollcallImage: nameOfBuilt(archives),
      databaseImages: true,
      traefikImage: traefik === undefined ? undefined : TRAEFIK_IMAGE,
      nodeAddress,
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Docker's network is the machine's own on Linux alone. */
async function kindAddress(target: KubectlTarget): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  return (await runKubectl(target, ['get', 'nodes', `--output=jsonpath=${path}`])) || undefined;
}

async function openNode(options: ClusterOptions): Promise<OpenCluster> {
  const traefik = await traefikBinary(options);
  const archives = await rollcallArchives(options);
  const databases = await databaseArchives(options);
  const { kubectl, helm } = await findKubernetesBinaries(['kubectl', 'helm'], binaryOptions(options));
  const parts = await findNodeParts(options, traefik);
  const node = await startNode({ ...parts, archives: [...archives, ...databases], log: options.log });
  return {
    facts: {
      kind: 'node',
      kubeconfigPath: node.kubeconfigPath,
      kubectl,
      helm,
      appRepository: APP_REPOSITORY,
      rollcallImage: nameOfBuilt(archives),
      databaseImages: databases.length > 0,
      traefikImage: traefik === undefined ? undefined : TRAEFIK_IMAGE,
      nodeAddress: node.addresses.node,
    },
    [Symbol.asyncDispose]: () => node.stop(),
  };
}

/**
 * What `startNode` is made of: binaries, packages and images; fetched and built at the first use.
 *
 * @param traefik a static executable, for an image.
 */
export async function findNodeParts(
  options: ClusterOptions,
  traefik?: string,
): Promise<Omit<Parameters<typeof startNode>[0], 'log'>> {
  const binaries = await findKubernetesBinaries(NODE_BINARIES, binaryOptions(options));
  const packages = await findPackages({ cacheDirectory: cacheDirectory(options.env, 'node'), log: options.log });
  return { binaries, packages, writeImages: (file) => writeTestImages(file, traefik) };
}
