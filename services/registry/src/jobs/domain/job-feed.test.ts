import { array, assert, boolean, constantFrom, nat, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { createJobFeed, type JobFeedEvent } from './job-feed.ts';
import { someJob } from './job-fixture.ts';
import type { Job } from './jobs.ts';

const describe = ({ id, uid, phase }: Job) => ({ id, uid, phase });
const feedOf = (capacity: number) => createJobFeed({ capacity, describe });

function job(id: string, fields: Partial<Job> = {}): Job {
  return someJob({ id, uid: `${id}-1`, phase: 'Pending', ...fields });
}

const told = (events: readonly JobFeedEvent[] | undefined) =>
  events?.map(({ version, type, job: { uid } }) => `${version} ${type} ${uid}`);

test('reports jobs that come, change and go, and nothing of changes that nobody can see', () => {
  const feed = feedOf(10);
  expect(feed.version).toBeUndefined();
  feed.replace([job('a')], 1);
  feed.apply({ version: 2, job: job('b'), deleted: false });
  feed.apply({ version: 3, job: job('b', { held: false }), deleted: false });
  feed.apply({ version: 4, job: job('a', { phase: 'Failed' }), deleted: false });
  feed.apply({ version: 5, job: job('a', { phase: 'Failed' }), deleted: true });
  feed.apply({ version: 5, job: job('late'), deleted: false });
  expect(told(feed.since(1))).toEqual(['2 added b-1', '4 modified a-1', '5 removed a-1']);
  expect(told(feed.snapshot())).toEqual(['5 added b-1']);
});

test('a job that was made anew under the same id is another one', () => {
  const feed = feedOf(10);
  const heard: JobFeedEvent[] = [];
  feed.subscribe((event) => heard.push(event));
  feed.replace([job('a')], 1);
  feed.replace([job('a', { uid: 'a-2' })], 4);
  feed.apply({ version: 5, job: job('a'), deleted: true });
  expect(told(heard)).toEqual(['1 removed a-1', '1 added a-2']);
  expect(feed.since(1)).toBeUndefined();
  expect(told(feed.snapshot())).toEqual(['5 added a-2']);
});

test('a version from before what is kept, or from a replica that is ahead, cannot be resumed from', () => {
  const feed = feedOf(2);
  feed.replace([], 1);
  for (let version = 2; version < 20; version += 1) feed.apply({ version, job: job(`j${version}`), deleted: false });
  expect(feed.since(3)).toBeUndefined();
  expect(feed.since(18)).toHaveLength(1);
  expect(feed.since(100)).toBeUndefined();
});

test('a bookmark is a version to resume from, though no event says so, and neither hides an event nor becomes an id', () => {
  const feed = feedOf(10);
  feed.replace([job('a')], 1);
  feed.reach(50);
  expect(feed.since(50)).toEqual([]);
  expect(feed.since(51)).toBeUndefined();
  expect([feed.version, feed.reached]).toEqual([1, 50]);
  feed.apply({ version: 51, job: job('b'), deleted: false });
  expect(told(feed.since(50))).toEqual(['51 added b-1']);
});

test('whoever follows a snapshot and the events has what the store has, wherever it was interrupted', () => {
  const step = record({
    id: constantFrom('a', 'b', 'c'),
    phase: constantFrom('Pending' as const, 'Progressing' as const, 'Succeeded' as const),
    life: nat(2),
    deleted: boolean(),
    interrupted: boolean(),
    relisted: boolean(),
  });
  assert(
    property(array(step, { maxLength: 60 }), (steps) => {
      const feed = feedOf(4);
      const store = new Map<string, Job>();
      let follower = new Map<string, object>();
      let cursor = 1;
      feed.replace([], 1);
      for (const [index, { id, phase, life, deleted, interrupted, relisted }] of steps.entries()) {
        const version = index + 2;
        const known = store.get(id);
        if (deleted && known === undefined) continue;
        // Only a list can bring another life of a name without a deletion before it.
        const uid = relisted || known === undefined ? `${id}-${life}` : known.uid;
        const next = job(id, { phase, uid });
        if (deleted) store.delete(id);
        else store.set(id, next);
        if (relisted) feed.replace([...store.values()], version);
        else feed.apply({ version, job: deleted ? (known ?? next) : next, deleted });
        if (interrupted) continue;
        const missed = feed.since(cursor);
        if (missed === undefined) follower = new Map();
        for (const event of missed ?? feed.snapshot()) {
          if (event.type === 'removed') follower.delete(event.job.id);
          else follower.set(event.job.id, describe(event.job));
          cursor = event.version;
        }
        if (missed === undefined) cursor = feed.version ?? 0;
        expect(follower).toEqual(new Map(store.values().map((each) => [each.id, describe(each)])));
      }
    }),
  );
});
