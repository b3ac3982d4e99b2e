import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
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
import { createLogger } from '@rollcall/platform/log.ts';
import { expect, test } from 'vitest';
import { buildAtStage, buildCluster } from '../model/build.ts';
import { createDeliveryInformers } from './informers.ts';
import { createMeasurements } from './measurements.ts';
import { createDeliveryObserver } from './observer.ts';
import { createRelations } from './relations.ts';
import { createSavedStates } from './saved-states.ts';

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

/** @param meanwhile what happens while the workload is looked at. */
function setUp(meanwhile: (remove: () => void) => void) {
  const measured: string[] = [];
  const connection: KubeConnection = { namespace: 'default', request: refuse, stream: refuse, close: refuse };
  const common = { connection, clock: systemClock, log: createLogger('test', 'silent') };
  const services = [createInformer<Service>({ ...common, kind: serviceKind })];
  const informers = createDeliveryInformers({ ...common, namespace: 'default', namespaces: [], services });
  const relations = createRelations(informers);
  informers.jobs.recordWrite(job);
  const measurements = createMeasurements({
    checks: {
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
    relations,
    registrations: { registrations, leases, namespace: 'default' },
    observeWorkload: async () => {
      meanwhile(() => informers.jobs.recordDelete(job));
      return { found: 'one', cluster: buildCluster() };
    },
    savedStates: createSavedStates({ findRevision: () => Promise.resolve(revision) }, informers.jobs.store),
    measurements,
    artifact: { fetcherImage: undefined, maxBytes: 1, allowPrivateAddresses: false },
    clock: systemClock,
  });
  return { observer, measurements, measured };
}

test('what is due is measured, but not for a job that was deleted while it was looked at', async () => {
  for (const isDeleted of [false, true]) {
    const { observer, measurements, measured } = setUp((remove) => {
      if (isDeleted) remove();
    });
    const snapshot = await observer.observe('default/deploy-shop');
    await measurements.stop();
    expect(snapshot?.job.metadata.uid).toBe(isDeleted ? undefined : 'uid-job');
    expect(measured).toEqual(isDeleted ? [] : ['errors']);
  }
});
