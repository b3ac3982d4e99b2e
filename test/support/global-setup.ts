import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { startControlPlane } from '@rollcall/local/control-plane.ts';
import { isAlive } from '@rollcall/local/file-lock.ts';
import {
  defaultCacheDirectory,
  findKubernetesBinaries,
  type KubernetesBinaries,
} from '@rollcall/local/kubernetes-binaries.ts';
import { startPostgres } from '@rollcall/local/postgres.ts';
import { startRedis } from '@rollcall/local/redis.ts';
import { findRedisBinary, type RedisBinary } from '@rollcall/local/redis-binary.ts';
import { stoppedBy } from '@rollcall/local/rollcall.ts';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of an admin's kubeconfig for the API server that all files share. */
    kubeconfig: string;
    /** By which a process finds that API server as a pod does, with all rights. */
    podEnvironment: Readonly<Record<string, string>>;
    /** A superuser's URL of the PostgreSQL that all files share. */
    postgresUrl: string;
    /** URL, with the password, of the Redis that all files share. */
    redisUrl: string;
    /** For files; removed after the run. */
    temporaryDirectory: string;
    kubernetesBinaries: KubernetesBinaries<(typeof BINARIES)[number]>;
    redisBinary: RedisBinary;
  }
}

/** Scheduler and kwok are for the chart's tests, which have a control plane of their own. */
const BINARIES = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
  'kubectl',
  'helm',
] as const;

const log = (line: string): void => console.error(line);

/** Followed by the process id of the run. */
const DIRECTORY_PREFIX = 'rollcall-test-';

/**
 * Starts one API server (with the controller manager, for garbage collection, and the custom
 * resource definitions), one PostgreSQL and one Redis for all integration tests of a run.
 *
 * @public Called by Vitest.
 * @returns what stops them.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await using stack = new AsyncDisposableStack();
  const redisBinary = await findRedisBinary({
    redisServer: process.env['REDIS_SERVER'],
    cacheDirectory: cacheDirectory(process.env, 'redis'),
    log,
  });
  const binaries = await findKubernetesBinaries(BINARIES, {
    assetsDirectory: process.env['KUBEBUILDER_ASSETS'],
    cacheDirectory: defaultCacheDirectory(process.env),
    log,
  });
  await removeAbandoned();
  const directory = await mkdtemp(join(tmpdir(), `${DIRECTORY_PREFIX}${process.pid}-`));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  // Registered before any is ready: when one fails, the others are waited for and stopped.
  const controlPlane = stoppedBy(
    stack,
    startControlPlane({
      directory: join(directory, 'control-plane'),
      binaries,
      workloads: false,
      controllerManager: true,
      log: () => undefined,
    }),
  );
  const postgres = stoppedBy(stack, startPostgres({ directory: join(directory, 'postgres') }));
  const redis = stoppedBy(stack, startRedis({ directory: join(directory, 'redis'), binary: redisBinary }));
  const [{ kubeconfigPath, podEnvironment }, { url }, { url: redisUrl }] = await Promise.all([
    controlPlane,
    postgres,
    redis,
  ]);
  project.provide('kubeconfig', kubeconfigPath);
  project.provide('podEnvironment', podEnvironment);
  project.provide('postgresUrl', url);
  project.provide('redisUrl', redisUrl);
  project.provide('temporaryDirectory', directory);
  project.provide('kubernetesBinaries', binaries);
  project.provide('redisBinary', redisBinary);
  const kept = stack.move();
  return () => kept.disposeAsync();
}

/** A run that was interrupted or killed leaves no process behind, but its directory. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(DIRECTORY_PREFIX)) continue;
    const pid = Number(name.slice(DIRECTORY_PREFIX.length).split('-')[0]);
    if (!isAlive(pid)) await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}
