import { expect, test } from 'vitest';
import { findStrays } from './strays.ts';

const now = new Date('2026-11-20T12:00:10Z');

function object(namespace: string, name: string, more: object = {}) {
  const metadata = { namespace, name, creationTimestamp: '2026-11-20T12:00:00Z' };
  return { apiVersion: 'rollcall.dev/v1alpha1', kind: 'DeliveryPolicy', metadata, ...more };
}

const young = object('apps', 'young');
const used = object('other', 'used', { status: { conditions: [{ type: 'Used' }] } });

test.for([
  ['what nobody has seen to', [object('apps', 'a'), object('shop', 'b')], ['a', 'b']],
  [
    'not what has only just come',
    [{ ...young, metadata: { ...young.metadata, creationTimestamp: '2026-11-20T12:00:08Z' } }],
    [],
  ],
  [
    'not what another installation has, nor what it ignores itself',
    [used, object('other', 'c'), object('apps', 'a')],
    ['a'],
  ],
] as const)('strays: %s', ([, objects, names]) => {
  expect(findStrays(objects, now).map(({ metadata }) => metadata.name)).toEqual(names);
});
