import type { ResourceQuota } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { recount } from './quota.ts';

const MARK = 'count/recount.rollcall.dev';
const jobs = 'count/deliveryjobs.rollcall.dev';
const leases = 'count/leases.coordination.k8s.io';

function quota(hard: Record<string, string>, used?: Record<string, string>): ResourceQuota {
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'rollcall' },
    spec: { hard },
    ...(used === undefined ? {} : { status: { hard, used } }),
  };
}

test.for([
  ['nobody has counted yet', quota({ [jobs]: '5' }), { [MARK]: '0' }],
  ['is counted but for one kind', quota({ [jobs]: '5', [leases]: '9' }, { [leases]: '1' }), { [MARK]: '0' }],
  ['was marked, and is not counted', quota({ [jobs]: '5', [MARK]: '0' }), { [MARK]: null }],
  ['was marked, and is counted', quota({ [jobs]: '5', [MARK]: '0' }, { [jobs]: '0' }), { [MARK]: null }],
  ['is counted', quota({ [jobs]: '5' }, { [jobs]: '0' }), undefined],
  ['limits nothing', quota({}), undefined],
] as const)('of a quota that %s', ([, object, change]) => {
  expect(recount(object, true)).toEqual(change);
});

test('a quota that Kubernetes does not count at all is left alone in the end, without the mark', () => {
  expect(recount(quota({ [jobs]: '5', [MARK]: '0' }), false)).toEqual({ [MARK]: null });
  expect(recount(quota({ [jobs]: '5' }), false)).toBeUndefined();
});
