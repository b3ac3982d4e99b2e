import type { Pod } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { podFault, podWait } from './pod-faults.ts';

type Status = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

function podWith(containers: Partial<Status>[], init: Partial<Status>[] = [], phase = 'Pending'): Pod {
  const named = (statuses: Partial<Status>[]) =>
    statuses.map((status) => ({ name: 'shop', ready: false, restartCount: 0, ...status }));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'shop-1' },
    status: { phase, containerStatuses: named(containers), initContainerStatuses: named(init) },
  };
}

const waiting = (reason: string, message?: string) => ({
  state: { waiting: { reason, ...(message === undefined ? {} : { message }) } },
});
const fetcher = (end: NonNullable<Status['state']>) => ({ name: 'rollcall-fetch', state: end });

test.for<[string, Pod, string | undefined, RegExp]>([
  ['starting', podWith([waiting('ContainerCreating')]), undefined, /^$/],
  ['running', podWith([{ ready: true, restartCount: 2 }], [], 'Running'), undefined, /^$/],
  [
    'no image',
    podWith([waiting('ImagePullBackOff', 'no such manifest')]),
    'ImagePullFailed',
    /shop-1.*no such manifest/,
  ],
  ['first failed pull', podWith([waiting('ErrImagePull')]), 'ImagePullFailed', /ErrImagePull/],
  ['a reference that is none', podWith([waiting('InvalidImageName')]), 'ImagePullFailed', /InvalidImageName/],
  [
    'crash loop',
    podWith([{ ...waiting('CrashLoopBackOff', 'back-off 10s'), lastState: { terminated: { exitCode: 3 } } }]),
    'CrashLoop',
    /exit code 3/,
  ],
  [
    'many restarts, between two crashes',
    podWith([{ restartCount: 3, ready: true }], [], 'Running'),
    'CrashLoop',
    /3 times/,
  ],
  [
    'a missing ConfigMap',
    podWith([waiting('CreateContainerConfigError', 'not found')]),
    'ContainerConfigInvalid',
    /not found/,
  ],
  ['an init container that crashes', podWith([], [waiting('CrashLoopBackOff')]), 'CrashLoop', /CrashLoopBackOff/],
  [
    'a fetcher that failed',
    podWith([], [fetcher({ terminated: { exitCode: 3, message: 'checksum mismatch\n' } })]),
    'ArtifactFetchFailed',
    /: checksum mismatch$/,
  ],
  [
    'a fetcher that failed before',
    podWith(
      [],
      [{ name: 'rollcall-fetch', ...waiting('CrashLoopBackOff'), lastState: { terminated: { exitCode: 1 } } }],
    ),
    'ArtifactFetchFailed',
    /exit code 1/,
  ],
  ['a fetcher that is done', podWith([], [fetcher({ terminated: { exitCode: 0, message: 'done' } })]), undefined, /^$/],
  [
    'a fetcher without its image',
    podWith([], [fetcher({ waiting: { reason: 'ErrImagePull' } })]),
    'ImagePullFailed',
    /./,
  ],
])('%s', ([, pod, reason, message]) => {
  const fault = podFault(pod);
  expect(fault?.reason).toBe(reason);
  expect(fault?.message ?? '').toMatch(message);
});

const unmet = (type: string, reason: string, message: string) => ({ type, status: 'False', reason, message });

function podOn(conditions: ReturnType<typeof unmet>[], pod: Pod = podWith([])): Pod {
  return { ...pod, status: { ...pod.status, conditions } };
}

const nodes = unmet('PodScheduled', 'Unschedulable', '0/3 nodes are available: 3 Insufficient cpu.');
const unready = unmet('Ready', 'ContainersNotReady', 'containers with unready status: [shop]');

test.for<[string, Pod, string | undefined, boolean?]>([
  ['no node', podOn([nodes, unready]), 'Pod shop-1: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.'],
  ['a gate', podOn([unmet('PodScheduled', 'SchedulingGated', '')]), 'Pod shop-1: SchedulingGated'],
  [
    'a pull that fails',
    podOn([unready], podWith([waiting('ErrImagePull', 'no such host')])),
    'Pod shop-1: container shop: ErrImagePull: no such host',
  ],
  [
    'a container that is being created',
    podOn([unready], podWith([waiting('ContainerCreating')])),
    'Pod shop-1: container shop is being created; its Events say why: kubectl describe pod shop-1',
    true,
  ],
  [
    'an init container of several',
    podOn([unready], podWith([waiting('PodInitializing')], [waiting('CreateContainerConfigError', 'no secret "a"')])),
    'Pod shop-1: container shop: CreateContainerConfigError: no secret "a"',
  ],
  [
    'its probe',
    podOn([unready], podWith([{}])),
    'Pod shop-1: ContainersNotReady: containers with unready status: [shop]',
    true,
  ],
  [
    'a readiness gate',
    podOn([unmet('Ready', 'ReadinessGatesNotReady', 'the status of pod readiness gate "a/b" is not "True"')]),
    'Pod shop-1: ReadinessGatesNotReady: the status of pod readiness gate "a/b" is not "True"',
    true,
  ],
  ['nobody knows what', podWith([{}]), undefined],
])('a pod waits for %s', ([, pod, message, isUsual = false]) => {
  const isUnscheduled = message?.includes('Unschedulable') === true ? { isUnscheduled: true } : {};
  expect(podWait(pod)).toEqual(message === undefined ? undefined : { message, isUsual, ...isUnscheduled });
});
