import { expect, test } from 'vitest';
import type { PodGroup } from '../job/snapshot.ts';
import { buildCluster, buildDeployment, buildPods, type DeploymentWish } from '../testing/builders.ts';
import { findStability } from './stability.ts';

const crash = { reason: 'CrashLoop', message: 'it crashes' } as const;
const run = (ready: number, options: Parameters<typeof buildPods>[2] = {}) =>
  buildPods('run', 3, { current: true, ready, ...options });

interface Row {
  readonly what: string;
  readonly deployment?: DeploymentWish;
  readonly pods: readonly PodGroup[];
  /** At once, after the grace, and when it may wait no longer. */
  readonly expected: readonly [string, string, string];
}

const WAITS = 'progressing';
test.for<Row>([
  { what: 'all are ready', pods: [run(3)], expected: ['stable', 'stable', 'stable'] },
  {
    what: 'some are not, perhaps not yet',
    deployment: { ready: 2 },
    pods: [run(2)],
    expected: [WAITS, 'degraded', 'degraded'],
  },
  {
    what: 'some are not and never will',
    deployment: { ready: 2 },
    pods: [run(2, { fault: crash })],
    expected: ['degraded', 'degraded', 'degraded'],
  },
  { what: 'none is ready', deployment: { ready: 0 }, pods: [run(0)], expected: [WAITS, 'unavailable', 'unavailable'] },
  {
    what: 'none is ready and never will be',
    deployment: { ready: 0 },
    pods: [run(0, { fault: crash })],
    expected: ['unavailable', 'unavailable', 'unavailable'],
  },
  {
    what: 'not available for long enough yet',
    deployment: { ready: 0 },
    pods: [run(3)],
    expected: [WAITS, 'degraded', 'degraded'],
  },
  {
    what: 'somebody rolls out, at full strength',
    deployment: { updated: 1, reason: 'ReplicaSetUpdated' },
    pods: [buildPods('run', 1, { current: true, ready: 0 }), buildPods('older', 3)],
    expected: [WAITS, WAITS, WAITS],
  },
  {
    what: 'somebody rolls out, and pods are missing',
    deployment: { updated: 1, ready: 2, reason: 'ReplicaSetUpdated' },
    pods: [buildPods('run', 1, { current: true, ready: 0 }), buildPods('older', 2)],
    expected: [WAITS, WAITS, 'unavailable'],
  },
  {
    what: 'somebody rolls out what crashes',
    deployment: { updated: 1, reason: 'ReplicaSetUpdated' },
    pods: [buildPods('run', 1, { current: true, ready: 0, fault: crash }), buildPods('older', 3)],
    expected: ['unavailable', 'unavailable', 'unavailable'],
  },
  {
    what: 'somebody has rolled out what does not come up',
    deployment: { updated: 1, reason: 'ProgressDeadlineExceeded' },
    pods: [buildPods('run', 1, { current: true, ready: 0 }), buildPods('older', 3)],
    expected: ['unavailable', 'unavailable', 'unavailable'],
  },
  {
    what: 'somebody has rolled out what does not come up, and changed it just now',
    deployment: { updated: 1, reason: 'ProgressDeadlineExceeded', generation: 2, observedGeneration: 1 },
    pods: [buildPods('run', 1, { current: true, ready: 0 }), buildPods('older', 3)],
    expected: [WAITS, WAITS, WAITS],
  },
  { what: 'the pods are not to be seen', pods: [], expected: [WAITS, WAITS, WAITS] },
])('stability: $what', ({ deployment, pods, expected }) => {
  const cluster = buildCluster({ deployment: buildDeployment(deployment), replicaSets: pods });
  const at = (waitedMs: number, isLate = false) => findStability(cluster, waitedMs, isLate).state;
  expect([at(0), at(5000), at(5000, true)]).toEqual(expected);
});
