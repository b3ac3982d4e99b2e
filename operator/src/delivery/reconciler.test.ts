import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { deploymentKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection, KubeRequest } from '@rollcall/platform/kube/connection.ts';
import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createApplier } from '../runtime/apply.ts';
import type { Change } from '../runtime/decision.ts';
import { createDeliveryMetrics } from './metrics.ts';
import { createDirectReads } from './observe/direct-reads.ts';
import { createRefusals } from './observe/refusals.ts';
import { deliveryReconciler } from './reconciler.ts';
import { buildDeployment, buildJob } from './testing/builders.ts';

const refuse = () => Promise.reject(new Error('not expected'));

/** An API server that answers with these codes, by method. */
function setUp(codes: Readonly<Record<string, number>>) {
  const answer = async ({ method }: KubeRequest): Promise<never> => {
    const code = codes[method] ?? 500;
    throw new KubeApiError(code, { code, message: `${method} is answered ${code}` });
  };
  const connection: KubeConnection = { namespace: 'default', request: answer, stream: refuse, close: refuse };
  const common = { connection, clock: systemClock, log: createLogger('test', 'silent') };
  const jobs = createInformer<DeliveryJob>({ ...common, kind: deliveryJobKind });
  jobs.recordWrite(buildJob());
  const recorded: string[] = [];
  const reconciler = deliveryReconciler({
    jobs: jobs.store,
    observer: { observe: refuse, applied: () => undefined, failed: () => undefined },
    concurrency: 1,
    metrics: createDeliveryMetrics(new Registry(), () => []),
    events: { record: ({ reason, message }) => void recorded.push(`${reason} ${message}`) },
    refusals: createRefusals(systemClock),
    requeue: () => undefined,
  });
  const deployments = { recordWrite: () => undefined, recordDelete: () => undefined };
  const applier = createApplier({
    connection,
    fieldManager: 'test',
    caches: [{ kind: deploymentKind, informer: deployments }],
    events: { record: () => undefined, pending: () => 0, start: refuse, stop: refuse, name: 'events' },
  });
  return {
    reads: createDirectReads(connection),
    applier,
    jobs,
    reconciler,
    /** The Events of a reconcile that fails like this. */
    eventsOf: async (work: Promise<unknown>): Promise<readonly string[]> => {
      const error: unknown = await work.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(Error);
      reconciler.onFailed?.('default/deploy-shop', error);
      return recorded;
    },
  };
}

const change: Change = { action: 'patch', kind: deploymentKind, object: buildDeployment(), patch: { spec: {} } };

test.for<[number, string]>([
  [403, 'ChangeRejected The API server refuses to patch Deployment shop: PATCH is answered 403'],
  [422, 'ChangeRejected The API server refuses to patch Deployment shop: PATCH is answered 422'],
])('a change that is answered %d is reported by an Event', async ([code, event]) => {
  const { applier, eventsOf } = setUp({ PATCH: code });
  expect(await eventsOf(applier.apply(change))).toEqual([event]);
});

test('what may not be read is no rejected change', async () => {
  const reading = setUp({ GET: 403 });
  expect(await reading.eventsOf(reading.reads.findJob('default', 'b'))).toEqual([]);
  // To see what another writer has left.
  const stale = setUp({ PATCH: 409, GET: 403 });
  expect(await stale.eventsOf(stale.applier.apply(change))).toEqual([]);
});

test.for<[DeliveryJob['status'] | undefined, boolean]>([
  [undefined, false],
  [{ phase: 'Pending' }, false],
  [{ phase: 'Progressing', startedAt: '2026-11-20T10:00:00Z' }, true],
  [{ phase: 'Paused', startedAt: '2026-11-20T10:00:00Z' }, true],
  [{ phase: 'RollingBack', startedAt: '2026-11-20T10:00:00Z' }, true],
  [{ phase: 'Succeeded', startedAt: '2026-11-20T10:00:00Z', finishedAt: '2026-11-20T10:01:00Z' }, false],
])('of jobs that wait to be observed, one with the status %o goes first: %s', ([status, isFirst]) => {
  const { jobs, reconciler } = setUp({});
  const { status: _, ...job } = buildJob({ metadata: { resourceVersion: '41' } });
  jobs.recordWrite({ ...job, ...(status === undefined ? {} : { status }) });
  expect(reconciler.isUrgent?.('default/deploy-shop')).toBe(isFirst);
});
