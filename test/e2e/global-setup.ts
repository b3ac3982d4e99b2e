import type { TestProject } from 'vitest/node';
import { type ClusterFacts, startCluster } from './delivery/cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** For deliveries; no test ends any part of it. */
    deliveryCluster: ClusterFacts;
  }
}

/**
 * Starts the cluster that the files share whose tests break nothing beyond their namespace.
 *
 * @public Called by Vitest.
 * @returns what stops it.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startCluster();
  project.provide('deliveryCluster', cluster.facts);
  return async () => cluster[Symbol.asyncDispose]();
}
