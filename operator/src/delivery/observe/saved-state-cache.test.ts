import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type ControllerRevision, controllerRevisionKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { buildAtStage, buildJob } from '../testing/builders.ts';
import { createSavedStateCache } from './saved-state-cache.ts';

const { job, saved } = buildAtStage({ strategy: 'Rolling', stage: 'Preparing' });
const queued = buildJob({ status: { phase: 'Pending', stage: 'Queued' } });
const running = buildAtStage({ strategy: 'Rolling', stage: 'Updating' }).job;

const revision: ControllerRevision = {
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: {
    name: job.metadata.name,
    namespace: job.metadata.namespace ?? '',
    ownerReferences: [{ apiVersion: '', kind: '', name: '', uid: job.metadata.uid ?? '' }],
  },
  revision: 1,
  data: saved,
};

/** @param stored what the API server has. */
function setUp(stored: ControllerRevision | undefined) {
  const present = new Set<DeliveryJob>([job]);
  let reads = 0;
  const findRevision = async () => {
    reads += 1;
    return stored;
  };
  const jobs = { get: () => [...present][0] };
  return { states: createSavedStateCache({ findRevision }, jobs), present, reads: () => reads };
}

test('what a job has saved is read once', async () => {
  const { states, reads } = setUp(revision);
  expect([await states.find(job), await states.find(job), reads()]).toEqual([saved, saved, 1]);
});

test('a job that was in the queue has saved nothing, until it is found to be there or the job goes on without', async () => {
  const { states, reads } = setUp(revision);
  expect([await states.find(job), reads()]).toEqual([saved, 1]);
  expect([await states.find(queued), await states.find(job), reads()]).toEqual([undefined, undefined, 1]);
  expect([await states.find(running), await states.find(job), reads()]).toEqual([saved, saved, 2]);
  expect(await states.find(queued)).toBeUndefined();
  states.writeCache.informer.recordWrite(revision);
  expect([await states.find(job), reads()]).toEqual([saved, 2]);
});

test('of a job that was deleted meanwhile nothing is kept', async () => {
  const { states, present, reads } = setUp(revision);
  present.clear();
  expect([await states.find(job), await states.find(job), reads()]).toEqual([saved, saved, 2]);
  states.writeCache.informer.recordWrite(revision);
  expect([await states.find(job), reads()]).toEqual([saved, 3]);
});

test('that a job has saved nothing yet is read once, and what it saves then not at all', async () => {
  const { states, reads } = setUp(undefined);
  expect([await states.find(job), await states.find(job), reads()]).toEqual([undefined, undefined, 1]);
  states.writeCache.informer.recordWrite(revision);
  expect([await states.find(job), await states.find(running), reads()]).toEqual([saved, saved, 1]);
});

test('a job that goes on without what it has saved asks every time', async () => {
  const { states, reads } = setUp(undefined);
  expect([await states.find(job), reads()]).toEqual([undefined, 1]);
  expect([await states.find(running), await states.find(running), reads()]).toEqual([undefined, undefined, 3]);
});

test('what another job of the same name has saved is none of this one', async () => {
  const { states, reads } = setUp(undefined);
  const owner = { apiVersion: '', kind: '', name: '', uid: 'another' };
  states.writeCache.informer.recordWrite({ ...revision, metadata: { ...revision.metadata, ownerReferences: [owner] } });
  expect([await states.find(running), reads()]).toEqual([undefined, 1]);
});

test('what is deleted is forgotten', async () => {
  const { states, reads } = setUp(revision);
  expect(states.writeCache.kind).toBe(controllerRevisionKind);
  await states.find(running);
  states.writeCache.informer.recordDelete(revision);
  expect([await states.find(running), reads()]).toEqual([saved, 2]);
});
