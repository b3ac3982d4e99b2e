import type { Pod } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { podFault } from './pod-faults.ts';

type Status = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

function podWith(containers: Partial<Status>[], init: Partial<Status>[] = [], phase = 'Pending'): Pod {
  const named = (statuses: Partial<Status>[]) => statuses.map((status) => ({ name: 'shop', ...status }));
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
