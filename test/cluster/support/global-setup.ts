import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { type ClusterFacts, openCluster } from './cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** What all files share, or why there is none, for which they are skipped. */
    cluster: ClusterFacts | string;
    /** For files; removed after the run. */
    clusterDirectory: string;
  }
}

/**
 * Opens the cluster that all files of the project share.
 *
 * @public Called by Vitest.
 * @returns what closes it.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-cluster-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  project.provide('clusterDirectory', directory);
  const cluster = await openCluster({ env: process.env, log: (line) => console.error(line) });
  if (typeof cluster === 'string') {
    console.error(`Skipped: ${cluster}`);
    project.provide('cluster', cluster);
  } else {
    stack.use(cluster);
    project.provide('cluster', cluster.facts);
  }
  const kept = stack.move();
  return () => kept.disposeAsync();
}
