import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Pod, PodTemplate } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { templateFingerprint } from '../workload/fingerprint.ts';
import { type DigestedReplicaSet, trimJob, trimPod, trimReplicaSet } from './trim-workloads.ts';

const template: PodTemplate = {
  metadata: { labels: { app: 'shop' } },
  spec: { containers: [{ name: 'shop', image: 'shop:1', resources: {} }], restartPolicy: 'Always' },
};

test('the digest of a ReplicaSet is that of its Deployment, whose template lacks the hash', () => {
  const replicaSet: DigestedReplicaSet = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: 'shop-abc',
      namespace: 'default',
      uid: 'rs-1',
      resourceVersion: '7',
      labels: { app: 'shop', 'pod-template-hash': 'abc' },
      annotations: { 'deployment.kubernetes.io/revision': '3', 'deployment.kubernetes.io/desired-replicas': '2' },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop', uid: 'd-1', controller: true },
        { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'n-1' },
      ],
    },
    spec: {
      replicas: 2,
      template: { ...template, metadata: { labels: { 'pod-template-hash': 'abc', app: 'shop' } } },
    },
  };
  const trimmed = trimReplicaSet(replicaSet);
  expect(trimmed.spec).toEqual({ replicas: 2, templateFingerprint: templateFingerprint(template) });
  expect(trimmed.metadata).toEqual({
    name: 'shop-abc',
    namespace: 'default',
    uid: 'rs-1',
    resourceVersion: '7',
    labels: { 'pod-template-hash': 'abc' },
    annotations: { 'deployment.kubernetes.io/revision': '3' },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop', uid: 'd-1', controller: true }],
  });
});

test('of a pod is kept what reports its faults, and no more of what its containers said than fits', () => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'shop-abc-1',
      uid: 'p-1',
      resourceVersion: '1',
      labels: { app: 'shop', 'pod-template-hash': 'abc' },
    },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      conditions: [
        { type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'z'.repeat(5000) },
        { type: 'PodScheduled', status: 'True' },
        { type: 'Initialized', status: 'True' },
      ],
      containerStatuses: [
        {
          name: 'shop',
          ready: false,
          restartCount: 4,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'x'.repeat(5000) } },
          lastState: { terminated: { reason: 'Error', exitCode: 1, message: 'y'.repeat(5000) } },
        },
      ],
    },
  };
  expect(trimPod(pod)).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'shop-abc-1', uid: 'p-1', resourceVersion: '1', labels: { 'pod-template-hash': 'abc' } },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'z'.repeat(512) }],
      containerStatuses: [
        {
          name: 'shop',
          ready: false,
          restartCount: 4,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'x'.repeat(512) } },
          lastState: { terminated: { reason: 'Error', exitCode: 1, message: 'y'.repeat(512) } },
        },
      ],
      initContainerStatuses: [],
    },
  });
});

test('a job is kept whole until it has ended and handed everything back', () => {
  const job: DeliveryJob = {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: {
      name: 'a',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', 'rollcall.dev/job-id': 'a' },
      finalizers: ['rollcall.dev/delivery'],
    },
    spec: {
      serviceName: 'shop',
      operation: 'Deploy',
      version: '1',
      artifact: { type: 'image', url: 'shop:1' },
      abort: false,
      promote: false,
    },
    status: { phase: 'Failed', stage: 'Finished', message: 'why', startedAt: 'then' },
  };
  const metadata = { name: 'a', annotations: { 'rollcall.dev/job-id': 'a' }, finalizers: ['rollcall.dev/delivery'] };
  expect(trimJob(job)).toEqual({ ...job, metadata });
  const released = { ...job, metadata: { ...job.metadata, finalizers: [] } };
  expect(trimJob(released).status).toEqual({ phase: 'Failed', startedAt: 'then' });
});
