import type { JobPhase, JobRecord } from '@rollcall/client/job-types.ts';
import { describe, expect, it } from 'vitest';
import { createListChanges } from './watch-jobs.ts';

const job = (id: string, phase: JobPhase): JobRecord => ({
  job_id: id,
  service_name: 'shop',
  operation: 'deploy',
  version: '1',
  old_version: null,
  strategy: null,
  phase,
  stage: null,
  step: null,
  weight: null,
  actual_weight: null,
  reason: null,
  message: '',
  artifact: { url: 'shop:1', type: 'image', checksum: null },
  requested_by: 'webhook',
  created_at: '2026-11-20T10:00:00Z',
  started_at: null,
  finished_at: null,
  analysis: [],
});

describe('changes of the list of jobs', () => {
  it('are all jobs at first, oldest first, then those that changed, with what they were', () => {
    const changes = createListChanges();
    const [old, young] = [job('old', 'Progressing'), job('young', 'Pending')];
    expect(changes.take([young, old])).toEqual([
      { job: old, previous: undefined },
      { job: young, previous: undefined },
    ]);
    expect(changes.take([{ ...young }, { ...old }])).toEqual([]);
    const done = job('old', 'Succeeded');
    expect(changes.take([young, done])).toEqual([{ job: done, previous: old }]);
  });

  it('forget jobs that are no longer listed', () => {
    const changes = createListChanges();
    changes.take([job('a', 'Succeeded')]);
    changes.take([job('b', 'Pending')]);
    expect(changes.take([job('a', 'Succeeded'), job('b', 'Pending')])).toHaveLength(1);
  });
});
