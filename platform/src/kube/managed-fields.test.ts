import type { ManagedFieldsEntry } from '@rollcall/crds/object-meta.ts';
import { expect, test } from 'vitest';
import { entriesOf, ownsBeyond, withoutOwned } from './managed-fields.ts';

const image = { 'f:containers': { 'k:{"name":"shop"}': { 'f:image': {} } } };
const flux: ManagedFieldsEntry = { manager: 'flux', fieldsV1: { 'f:spec': { 'f:replicas': {} } } };
const status: ManagedFieldsEntry = { manager: 'ours', subresource: 'status', fieldsV1: { 'f:status': {} } };
const ours: ManagedFieldsEntry = {
  manager: 'ours',
  fieldsV1: {
    'f:metadata': { 'f:annotations': { '.': {}, 'f:rollcall.dev/version': {} } },
    'f:spec': { 'f:strategy': { 'f:rollingUpdate': { 'f:maxSurge': {} } }, 'f:template': { 'f:spec': image } },
  },
};
const entries = [flux, ours, status];

test('a manager has what it wrote to the object itself', () => {
  expect(entriesOf(entries, 'ours')).toEqual([ours]);
  expect(entriesOf(undefined, 'ours')).toEqual([]);
});

test.for<[readonly string[], object | undefined]>([
  [['metadata', 'spec'], ours.fieldsV1],
  [
    ['metadata.annotations', 'spec.template'],
    { 'f:metadata': ours.fieldsV1?.['f:metadata'], 'f:spec': { 'f:template': { 'f:spec': image } } },
  ],
  [['metadata.annotations', 'spec.temp'], { 'f:metadata': ours.fieldsV1?.['f:metadata'] }],
  [['spec.strategy.rollingUpdate.maxSurge'], { 'f:spec': { 'f:strategy': ours.fieldsV1?.['f:spec']?.['f:strategy'] } }],
  [[], undefined],
])('and keeps of it what it may: %j', ([kept, fieldsV1]) => {
  const rest = withoutOwned(entries, 'ours', kept);
  expect(rest).toEqual([flux, ...(fieldsV1 === undefined ? [] : [{ ...ours, fieldsV1 }]), status]);
  expect(ownsBeyond(entries, 'ours', kept)).toBe(fieldsV1 !== ours.fieldsV1);
  expect(ownsBeyond(rest, 'ours', kept)).toBe(false);
});

test('where nobody else owns anything the list is emptied', () => {
  expect(withoutOwned([ours], 'ours', [])).toEqual([{}]);
});
