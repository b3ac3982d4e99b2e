import type { ControllerRevision } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { buildAtStage, buildJob } from '../model/build.ts';
import { createSavedStates } from './saved-states.ts';

test('what a job has saved is read once, and anew after it has returned to the queue', async () => {
  const { job, saved } = buildAtStage({ strategy: 'Rolling', stage: 'Preparing' });
  const revision: ControllerRevision = {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: job.metadata.name,
      ownerReferences: [{ apiVersion: '', kind: '', name: '', uid: job.metadata.uid ?? '' }],
    },
    revision: 1,
    data: saved,
  };
  let reads = 0;
  const findRevision = async () => {
    reads += 1;
    return revision;
  };
  const states = createSavedStates({ findRevision }, () => true);
  expect(await states.find(job)).toBe(saved);
  expect(await states.find(job)).toBe(saved);
  expect(reads).toBe(1);
  expect(await states.find(buildJob({ status: { phase: 'Pending', stage: 'Queued' } }))).toBeUndefined();
  expect(await states.find(job)).toBe(saved);
  expect(reads).toBe(2);
});
