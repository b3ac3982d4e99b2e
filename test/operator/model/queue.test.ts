import { annotations, finalizers } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { planJob } from '@rollcall/operator/delivery/job/plan.ts';
import type { SavedState } from '@rollcall/operator/delivery/job/snapshot.ts';
import { isFinished, isRunning, jobOrder, queueView } from '@rollcall/operator/delivery/start/queue.ts';
import {
  buildCluster,
  buildDeployment,
  buildJob,
  buildSnapshot,
  START,
} from '@rollcall/operator/delivery/testing/builders.ts';
import { claimOn, ownClaim } from '@rollcall/operator/delivery/workload/claim.ts';
import type { Change } from '@rollcall/operator/runtime/decision.ts';
import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';

/*
 * Jobs of one second, made one after the other, that all find the same Deployment, as jobs of one service or of several. Each is
 * reconciled by a worker of its own; a write is under way for a while, in which the others read and write. Operators see jobs
 * and Deployment late, and each as late as may be. One that no longer leads sleeps on what it was about to write, for
 * as long as it likes, and knows nothing of what came first. Whoever writes what he knew in time has his write taken: versions are
 * all that protects anybody.
 */

/** How many versions behind. */
const behind = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat({ max: 4 }) });
const staleness = fc.record({ job: behind, others: behind, deployment: behind });
type Staleness = typeof staleness extends fc.Arbitrary<infer S> ? S : never;

const run = fc.record({
  /** In the order in which they are made. */
  names: fc.shuffledSubarray(['deploy-a', 'deploy-b', 'rollback-c'], { minLength: 2 }),
  services: fc.array(fc.constantFrom('shop', 'cart'), { minLength: 3, maxLength: 3 }),
  turns: fc.array(
    fc.oneof(
      { weight: 8, arbitrary: fc.record({ type: fc.constant('turn' as const), job: fc.nat({ max: 2 }), staleness }) },
      { weight: 1, arbitrary: fc.constant({ type: 'new job' as const }) },
      { weight: 2, arbitrary: fc.record({ type: fc.constant('new leader' as const), sleep: fc.nat({ max: 25 }) }) },
    ),
    { maxLength: 120, size: 'max' },
  ),
});
type Run = typeof run extends fc.Arbitrary<infer R> ? R : never;

const LIMIT = 600;
const UP_TO_DATE: Staleness = { job: 0, others: 0, deployment: 0 };

function isOver(job: DeliveryJob): boolean {
  return isFinished(job) && job.metadata.finalizers?.includes(finalizers.delivery) !== true;
}

function simulate({ names, services, turns }: Run): void {
  /** All versions of each, the newest last. */
  const jobs = new Map<string, DeliveryJob[]>();
  const deployments: Deployment[] = [buildDeployment()];
  const records = new Map<string, SavedState>();
  const underWay = new Map<string, Change[]>();
  const sleepers: { readonly wakesAt: number; readonly name: string; readonly changes: Change[] }[] = [];
  let seen = new Map<string, number>();
  let turnCount = 0;
  let version = 100;

  const all = () => [...jobs.values()].flatMap((versions) => versions.slice(-1));
  const find = (name: string) => jobs.get(name)?.at(-1);

  function create(): void {
    const name = names[jobs.size];
    if (name === undefined) return;
    const metadata = {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: [finalizers.history],
    };
    jobs.set(name, [buildJob({ metadata, spec: { serviceName: services[jobs.size] ?? 'shop' } })]);
    seen.set(name, jobs.size);
  }

  /** As the API server is asked, after the claim was seen. */
  function abandonedClaimOn(deployment: Deployment): string | undefined {
    const claim = claimOn(deployment);
    const holder = claim === undefined ? undefined : find(claim.name);
    const isHeld = holder !== undefined && !isFinished(holder) && holder.status?.startedAt === claim?.startedAt;
    return isHeld ? undefined : claim?.text;
  }

  function reconcile(name: string, late: Staleness): void {
    const versions = jobs.get(name) ?? [];
    const job = versions.at(-1 - late.job) ?? versions[0];
    const deployment = deployments.at(-1 - late.deployment) ?? deployments[0];
    if (job === undefined || deployment === undefined) return;
    const order = jobOrder(({ metadata }) => seen.get(metadata.name) ?? 0);
    const others = [...jobs]
      .flatMap(([other, known]) =>
        other === name ? [] : known.slice(0, Math.max(1, known.length - late.others)).slice(-1),
      )
      .filter(({ spec }) => spec.serviceName === job.spec.serviceName);
    const unfinished = [job, ...others].filter((other) => !isFinished(other));
    const queue = queueView(job, unfinished, { order, supersede: false });
    const saved = isRunning(job) || isFinished(job) ? records.get(name) : undefined;
    const cluster = buildCluster({ deployment, abandonedClaim: abandonedClaimOn(deployment) });
    const now = new Date(START + turnCount * 10);
    const { changes } = planJob(buildSnapshot({ job, queue, saved, cluster, now }));
    underWay.set(
      name,
      changes.filter(({ action }) => action !== 'event'),
    );
  }

  function put(name: string, changed: Partial<DeliveryJob>, observed: string | undefined): boolean {
    const job = find(name);
    if (job === undefined || observed !== job.metadata.resourceVersion) return false;
    version += 1;
    const metadata = { ...job.metadata, ...changed.metadata, resourceVersion: String(version) };
    jobs.get(name)?.push({ ...job, ...changed, metadata });
    return true;
  }

  function patchDeployment(change: Change & { action: 'patch' }): boolean {
    const deployment = deployments.at(-1) ?? buildDeployment();
    if (change.object.metadata.resourceVersion !== deployment.metadata.resourceVersion) return false;
    const { metadata } = change.patch as { metadata: { annotations: Record<string, string | null> } };
    const wanted = metadata.annotations[annotations.delivering] ?? undefined;
    version += 1;
    const { [annotations.delivering]: _, ...kept } = deployment.metadata.annotations ?? {};
    const noted = wanted === undefined ? kept : { ...kept, [annotations.delivering]: wanted };
    const changed = { ...deployment.metadata, annotations: noted, resourceVersion: String(version) };
    deployments.push({ ...deployment, metadata: changed });
    return true;
  }

  /** @returns whether it was accepted. */
  function take(name: string, change: Change): boolean {
    switch (change.action) {
      case 'create':
        if (records.has(name)) return false;
        if ('data' in change.manifest) records.set(name, change.manifest.data as SavedState);
        return true;
      case 'delete':
        return records.delete(name);
      case 'status':
        return put(name, { status: change.status as DeliveryJobStatus }, change.object.metadata.resourceVersion);
      case 'patch':
        if (change.kind.kind === 'Deployment') return patchDeployment(change);
        return put(name, change.patch, change.object.metadata.resourceVersion);
      case 'apply':
      case 'disown':
      case 'event':
      default:
        return true;
    }
  }

  function write(name: string, change: Change): boolean {
    const isTaken = take(name, change);
    checkClaims();
    return isTaken;
  }

  /** Whatever happens: a job that has begun has the Deployment. */
  function checkClaims(): void {
    const holder = claimOn(deployments.at(-1) ?? buildDeployment())?.text;
    for (const job of all()) {
      if (isRunning(job) && job.status?.stage === 'Updating') expect(holder).toBe(ownClaim(job));
    }
  }

  function turn(name: string, late: Staleness): void {
    const job = find(name);
    if (job === undefined || isOver(job)) return;
    if (job.status?.stage === 'Updating') {
      // What a strategy does is not of interest here.
      put(name, { status: { ...job.status, phase: 'Succeeded', stage: 'Succeeded' } }, job.metadata.resourceVersion);
      underWay.delete(name);
      return;
    }
    const [next, ...rest] = underWay.get(name) ?? [];
    if (next === undefined) return reconcile(name, late);
    underWay.set(name, write(name, next) ? rest : []);
  }

  function lead(sleep: number): void {
    seen = new Map([...jobs.keys()].map((name) => [name, 0]));
    for (const [name, changes] of underWay) sleepers.push({ wakesAt: turnCount + sleep, name, changes });
    underWay.clear();
  }

  function pass(name: string, late: Staleness): void {
    turnCount += 1;
    for (const { name: of, changes } of sleepers.filter(({ wakesAt }) => wakesAt === turnCount)) {
      for (const change of changes) if (!write(of, change)) break;
    }
    turn(name, late);
  }

  for (const event of turns) {
    if (event.type === 'new job') create();
    else if (event.type === 'new leader') lead(event.sleep);
    else pass([...jobs.keys()][event.job % Math.max(1, jobs.size)] ?? '', event.staleness);
  }
  while (jobs.size < names.length) create();
  for (let count = 0; count < LIMIT && !all().every(isOver); count += 1)
    pass(names[count % names.length] ?? '', UP_TO_DATE);
  expect(all().map(({ metadata, status }) => [metadata.name, status?.phase])).toEqual(
    names.map((name) => [name, 'Succeeded']),
  );
}

test('of jobs that deliver to one Deployment one has begun at a time, and all get their turn', () => {
  expect.hasAssertions();
  fc.assert(fc.property(run, simulate), { numRuns: 1000 });
}, 120_000);
