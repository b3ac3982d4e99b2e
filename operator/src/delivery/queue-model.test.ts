import { finalizers } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Change } from '../runtime/decision.ts';
import { buildJob, buildSnapshot } from './model/build.ts';
import { planJob } from './plan.ts';
import { isFinished, isRunning, jobOrder, queueView } from './queue.ts';
import type { SavedState } from './snapshot.ts';

/*
 * Jobs of one service and one second, made one after the other. Each is looked at by a worker of its own; a write is under way for
 * a while, in which the others can look, and write once each. Another leader knows nothing of what came first, and meets a
 * write that the one before had still under way.
 */

const run = fc.record({
  /** In the order in which they are made. */
  names: fc.shuffledSubarray(['deploy-a', 'deploy-b', 'rollback-c'], { minLength: 2 }),
  turns: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ type: fc.constant('turn' as const), job: fc.nat({ max: 2 }) }) },
      { weight: 1, arbitrary: fc.constant({ type: 'new job' as const }) },
      { weight: 1, arbitrary: fc.constant({ type: 'new leader' as const }) },
    ),
    { maxLength: 60, size: 'max' },
  ),
});
type Run = typeof run extends fc.Arbitrary<infer R> ? R : never;

const LIMIT = 400;

function simulate({ names, turns }: Run): void {
  const jobs = new Map<string, DeliveryJob>();
  const records = new Map<string, SavedState>();
  const underWay = new Map<string, Change[]>();
  const ended: string[] = [];
  let seen = new Map<string, number>();
  /** Of the leader before, by job. */
  const lateWrites = new Map<string, Change>();

  function create(): void {
    const name = names[jobs.size];
    if (name === undefined) return;
    const metadata = {
      name,
      uid: `uid-${name}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: [finalizers.history],
    };
    jobs.set(name, buildJob({ metadata: { ...metadata, resourceVersion: '1' } }));
    seen.set(name, jobs.size);
  }

  const get = (name: string) => jobs.get(name) ?? buildJob({ status: { phase: 'Failed' } });

  function look(name: string): void {
    const job = get(name);
    const order = jobOrder(({ metadata }) => seen.get(metadata.name) ?? 0);
    const queue = queueView(
      job,
      [...jobs.values()].filter((other) => !isFinished(other)),
      { order, supersede: false },
    );
    const saved = isRunning(job) ? records.get(name) : undefined;
    const { changes } = planJob(buildSnapshot({ job, queue, saved }));
    underWay.set(
      name,
      changes.filter(({ action }) => action !== 'event'),
    );
  }

  function put(name: string, changed: Partial<DeliveryJob>, observed: string | undefined): void {
    const job = get(name);
    const { resourceVersion = '' } = job.metadata;
    if (observed !== resourceVersion) return;
    const metadata = { ...job.metadata, ...changed.metadata, resourceVersion: `${resourceVersion}1` };
    jobs.set(name, { ...job, ...changed, metadata });
  }

  function write(name: string, change: Change): void {
    if (change.action === 'create' && 'data' in change.manifest) records.set(name, change.manifest.data as SavedState);
    if (change.action === 'delete') records.delete(name);
    if (change.action === 'status') {
      put(name, { status: change.status as DeliveryJobStatus }, change.object.metadata.resourceVersion);
    }
    if (change.action === 'patch') {
      put(name, change.patch, change.object.metadata.resourceVersion);
    }
    const begun = [...jobs.values()].filter((job) => isRunning(job) && job.status?.stage !== 'Preparing');
    expect(begun.length).toBeLessThanOrEqual(1);
  }

  function turn(name: string): void {
    const job = get(name);
    if (isFinished(job)) return;
    if (job.status?.stage === 'Updating') {
      // What a strategy does is not of interest here.
      put(name, { status: { ...job.status, phase: 'Succeeded' } }, job.metadata.resourceVersion);
      underWay.delete(name);
      ended.push(name);
      return;
    }
    const [next, ...rest] = underWay.get(name) ?? [];
    if (next === undefined) return look(name);
    underWay.set(name, rest);
    write(name, next);
  }

  function lead(): void {
    seen = new Map([...jobs.keys()].map((name) => [name, 0]));
    for (const [name, [change]] of underWay) if (change !== undefined) lateWrites.set(name, change);
    underWay.clear();
  }

  /** No write takes longer than the others need for one of theirs. */
  function turnOf(chosen: string): void {
    const waiting = [...underWay].filter(([name, changes]) => name !== chosen && changes.length > 0);
    const late = [...lateWrites];
    turn(chosen);
    for (const [name] of waiting) turn(name);
    for (const [name, change] of late) {
      lateWrites.delete(name);
      write(name, change);
    }
  }

  for (const event of turns) {
    if (event.type === 'new job') create();
    else if (event.type === 'new leader') lead();
    else turnOf([...jobs.keys()][event.job % Math.max(1, jobs.size)] ?? '');
  }
  while (jobs.size < names.length) create();
  for (let count = 0; count < LIMIT && ended.length < names.length; count += 1)
    turnOf(names[count % names.length] ?? '');
  expect(ended.toSorted()).toEqual(names.toSorted());
}

test('of jobs of one second one runs at a time, and all get their turn', () => {
  expect.hasAssertions();
  fc.assert(fc.property(run, simulate), { numRuns: 1000 });
});
