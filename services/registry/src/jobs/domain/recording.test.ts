import { describe, expect, test } from 'vitest';
import { someJob as job } from '../testing/job-fixture.ts';
import type { JobPhase } from './jobs.ts';
import { historyRecord, planRecording } from './recording.ts';

const now = new Date('2026-11-20T12:00:00Z');

const retentionMs = 7 * 86_400_000;

/** @param recorded whether the job is known to be in the history. */
const plan = (fields: Parameters<typeof job>[0], recorded: boolean, at = now) =>
  planRecording(job(fields), { recorded, now: at, retentionMs });

describe('what is done with a job', () => {
  const running: readonly JobPhase[] = ['Progressing', 'Paused', 'Verifying', 'Promoting', 'RollingBack'];
  const finished: readonly JobPhase[] = ['Succeeded', 'RolledBack', 'Failed'];

  test.each([undefined, 'Pending', ...running] as const)('%s: it is held until it finishes', (phase) => {
    expect(plan({ phase, held: false }, false)).toBe('hold');
    expect(plan({ phase, held: true }, false)).toBe('nothing');
  });

  test.each([undefined, 'Pending'] as const)('%s and deleted: it goes unrecorded', (phase) => {
    expect(plan({ phase, deleted: true }, false)).toBe('release');
    expect(plan({ phase, deleted: true, held: false }, false)).toBe('nothing');
    // It had begun once, which was reported: the operator gives it up first.
    expect(plan({ phase, deleted: true, attended: true }, false)).toBe('nothing');
  });

  test.each(running)('%s and deleted: it is held until it finishes', (phase) => {
    expect(plan({ phase, deleted: true }, false)).toBe('nothing');
  });

  test.each(finished)('%s: it is recorded and let go, deleted or not, held or not', (phase) => {
    for (const deleted of [false, true]) {
      expect(plan({ phase, deleted }, false)).toBe('record');
      expect(plan({ phase, deleted }, true)).toBe('release');
      expect(plan({ phase, deleted, held: false }, false)).toBe('record');
      expect(plan({ phase, deleted, held: false }, true)).toBe('nothing');
    }
  });
});

describe('a finished job', () => {
  const finishedAt = new Date('2026-11-20T11:00:00Z');
  const over = new Date(finishedAt.getTime() + retentionMs);
  const kept = new Date(over.getTime() - 1);

  test('is deleted when it is in the history and the retention is over', () => {
    expect(plan({ phase: 'Failed', finishedAt, held: false }, true, kept)).toBe('nothing');
    expect(plan({ phase: 'Failed', finishedAt, held: false }, true, over)).toBe('delete');
  });

  test('is recorded first, however old', () => {
    expect(plan({ phase: 'Failed', finishedAt, held: false }, false, over)).toBe('record');
    expect(plan({ phase: 'Failed', finishedAt, held: true }, true, over)).toBe('release');
  });

  test('is recorded at once, and let go when the operator has let it go', () => {
    expect(plan({ phase: 'Succeeded', finishedAt, attended: true }, false)).toBe('record');
    expect(plan({ phase: 'Succeeded', finishedAt, attended: true }, true)).toBe('nothing');
    expect(plan({ phase: 'Succeeded', finishedAt, attended: true }, true, over)).toBe('nothing');
    expect(plan({ phase: 'Succeeded', finishedAt, attended: false }, true)).toBe('release');
  });

  test('is kept where nobody knows when it finished, and not deleted twice', () => {
    expect(plan({ phase: 'Failed', finishedAt: undefined, held: false }, true, over)).toBe('nothing');
    expect(plan({ phase: 'Failed', finishedAt, held: false, deleted: true }, true, over)).toBe('nothing');
  });
});

describe('the record of a job', () => {
  test.each([
    { phase: 'Succeeded', outcome: 'success' },
    { phase: 'Failed', outcome: 'failed' },
    { phase: 'RolledBack', outcome: 'rolled_back' },
  ] as const)('$phase is $outcome', ({ phase, outcome }) => {
    expect(historyRecord(job({ phase }), now)).toMatchObject({ outcome, oldVersion: '1.0.0', newVersion: '1.1.0' });
  });

  test('there is none of a job that has not finished', () => {
    expect(historyRecord(job({ phase: 'Promoting' }), now)).toBeUndefined();
  });

  test('what the status does not tell is empty, or now', () => {
    const record = historyRecord(
      job({
        phase: 'Failed',
        oldVersion: undefined,
        startedAt: undefined,
        finishedAt: undefined,
        requestedBy: undefined,
      }),
      now,
    );
    expect(record).toMatchObject({ oldVersion: '', requestedBy: '', startedAt: now, finishedAt: now });
  });

  test('what the database cannot hold is left out', () => {
    const record = historyRecord(job({ phase: 'Failed', requestedBy: 'a\0b', message: '\0no' }), now);
    expect(record).toMatchObject({ requestedBy: 'ab', message: 'no' });
  });

  test.each([
    ['Cancelled', 'RolledBack', false],
    ['Superseded', 'RolledBack', false],
    ['NotNewer', 'RolledBack', false],
    ['Aborted', 'RolledBack', true],
    ['WorkloadNotFound', 'Failed', true],
    ['Unchanged', 'Succeeded', false],
    ['Succeeded', 'Succeeded', true],
  ] as const)('%s, %s: it is an update: %s', (reason, phase, isUpdate) => {
    expect(historyRecord(job({ reason, phase }), now)?.isUpdate).toBe(isUpdate);
  });

  const old = { url: 'shop:1.0.0', type: 'image', checksum: undefined } as const;

  test('what ran before is a release where all of it is known, and can be delivered', () => {
    const release = (fields: Parameters<typeof job>[0]) =>
      historyRecord(job({ phase: 'Succeeded', oldArtifact: old, ...fields }), now)?.oldRelease;
    expect(release({})).toEqual({ serviceName: 'shop', version: '1.0.0', artifact: old });
    expect(release({ oldArtifact: undefined })).toBeUndefined();
    expect(release({ oldVersion: undefined })).toBeUndefined();
    expect(release({ oldVersion: '..' })).toBeUndefined();
    expect(release({ oldArtifact: { ...old, url: 'Shop' } })).toBeUndefined();
  });

  test('a job cannot have ended before it began', () => {
    const record = historyRecord(job({ phase: 'Failed', startedAt: now }), now);
    expect(record?.startedAt).toEqual(record?.finishedAt);
  });
});
