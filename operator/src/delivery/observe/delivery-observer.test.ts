import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import {
  type ControllerRevision,
  type Lease,
  leaseKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';
import { indexBy } from '../../runtime/object-index.ts';
import { buildAtStage, buildCluster, buildJob } from '../testing/builders.ts';
import { createDeliveryObserver } from './delivery-observer.ts';
import { createIndexes } from './indexes.ts';
import { createDeliveryInformers } from './informers.ts';
import { createMeasurements } from './measurements.ts';
import { createRefusals } from './refusals.ts';
import { createSavedStateCache } from './saved-state-cache.ts';

const check = { name: 'errors', initialDelaySeconds: 0, intervalSeconds: 1, count: 1, failureLimit: 0 };
const { job, saved } = buildAtStage({ strategy: 'Rolling', stage: 'Verifying', policy: { analysis: [check] } });

const revision: ControllerRevision = {
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: {
    name: job.metadata.name,
    namespace: 'default',
    uid: 'uid-revision',
    ownerReferences: [{ apiVersion: 'rollcall.dev/v1alpha1', kind: 'DeliveryJob', name: 'x', uid: 'uid-job' }],
  },
  revision: 1,
  data: saved,
};

const refuse = () => Promise.reject(new Error('nothing is read'));

interface Setup {
  /** What happens while the workload is observed. */
  readonly meanwhile?: (remove: () => void) => void;
  readonly jobs?: readonly DeliveryJob[];
  readonly findRevision?: () => Promise<ControllerRevision | undefined>;
}

function setUp({ meanwhile, jobs = [job], findRevision = () => Promise.resolve(revision) }: Setup) {
  const measured: string[] = [];
  const connection: KubeConnection = { namespace: 'default', request: refuse, stream: refuse, close: refuse };
  const common = { connection, clock: systemClock, log: createLogger('test', 'silent') };
  const services = [createInformer<Service>({ ...common, kind: serviceKind })];
  const informers = createDeliveryInformers({ ...common, namespace: 'default', namespaces: [], services });
  const indexes = createIndexes(informers);
  for (const each of jobs) informers.jobs.recordWrite(each);
  const measurements = createMeasurements({
    checkRunner: {
      measure: async ({ name }) => {
        measured.push(name);
        return { passed: true, message: 'ok' };
      },
    },
    clock: systemClock,
    concurrency: 1,
    onCompleted: () => undefined,
  });
  const registrations = createInformer<ServiceRegistration>({ ...common, kind: serviceRegistrationKind });
  const leases = createInformer<Lease>({ ...common, kind: leaseKind });
  const observer = createDeliveryObserver({
    informers,
    indexes,
    registrations: { registrations: indexBy([registrations], ({ spec }) => spec.serviceName), leases },
    observeWorkload: async () => {
      meanwhile?.(() => informers.jobs.recordDelete(job));
      return { found: 'one', cluster: buildCluster() };
    },
    savedStates: createSavedStateCache({ findRevision }, informers.jobs.store),
    measurements,
    refusals: createRefusals(systemClock),
    artifact: { fetcherImage: undefined, maxBytes: 1, allowPrivateAddresses: false },
    clock: systemClock,
  });
  return { observer, measurements, measured };
}

test('what is due is measured, but not for a job that was deleted while it was observed', async () => {
  for (const isDeleted of [false, true]) {
    const { observer, measurements, measured } = setUp({
      meanwhile: (remove) => {
        if (isDeleted) remove();
      },
    });
    const snapshot = await observer.observe('default/deploy-shop');
    await measurements.stop();
    expect(snapshot?.job.metadata.uid).toBe(isDeleted ? undefined : 'uid-job');
    expect(measured).toEqual(isDeleted ? [] : ['errors']);
  }
});

test.for<['of another job ahead' | 'of a reconcile that failed', readonly DeliveryJob[]]>([
  [
    'of another job ahead',
    [buildJob({ metadata: { name: 'first', uid: 'uid-first' }, status: { phase: 'Progressing', stage: 'Updating' } })],
  ],
  ['of a reconcile that failed', []],
])('that nothing was saved is not assumed because %s', async ([why, others]) => {
  const preparing = buildAtStage({ strategy: 'Rolling', stage: 'Preparing' }).job;
  const stored: ControllerRevision[] = [];
  let reads = 0;
  const findRevision = async () => {
    reads += 1;
    return stored[0];
  };
  const { observer } = setUp({ jobs: [preparing, ...others], findRevision });
  const observe = async () => (await observer.observe('default/deploy-shop'))?.saved;
  expect([await observe(), await observe()]).toEqual([undefined, undefined]);
  expect(reads).toBe(others.length === 0 ? 1 : 3);
  stored.push(revision);
  if (why === 'of a reconcile that failed') observer.failed(preparing);
  expect(await observe()).toBe(saved);
});
