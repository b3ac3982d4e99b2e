import { annotations, deliveryJobKind, finalizers, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { planJob } from '@rollcall/operator/delivery/job/plan.ts';
import { isFinished } from '@rollcall/operator/delivery/start/queue.ts';
import { claimOn } from '@rollcall/operator/delivery/workload/claim.ts';
import type { Change } from '@rollcall/operator/runtime/decision.ts';
import { deploymentKind, serviceKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSimulation, type Scenario, userServices } from '../../support/delivery-simulation/simulation.ts';
import { RefusedError } from '../../support/delivery-simulation/store.ts';

/*
 * Two jobs of different services that find the same Deployment, because somebody labels it anew: no queue keeps them apart. For each
 * there are two operators that both believe they lead; one of them sleeps on what it has decided, and acts on it much later.
 */

const NAMES = ['job', 'rival'] as const;
type Name = (typeof NAMES)[number];

const strategy = fc.constantFrom<DeliveryStrategy>('Rolling', 'BlueGreen', 'Canary');
const name = fc.constantFrom(...NAMES);
const tick = fc.integer({ min: 0, max: 120 });

const run = fc.record({
  strategies: fc.tuple(strategy, strategy),
  routed: fc.boolean(),
  replicas: fc.integer({ min: 1, max: 4 }),
  autoPromote: fc.boolean(),
  /** When the second job comes. */
  comesAt: fc.integer({ min: 0, max: 40 }),
  aborts: fc.array(fc.record({ tick, name }), { maxLength: 1 }),
  /** Ticks in which nobody reconciles a job. */
  pauses: fc.array(fc.record({ tick, name, ticks: fc.integer({ min: 1, max: 30 }) }), { maxLength: 2 }),
  sleepers: fc.array(fc.record({ tick, name, delayTicks: fc.integer({ min: 0, max: 90 }) }), { maxLength: 8 }),
});
type Run = typeof run extends fc.Arbitrary<infer R> ? R : never;

/** With more of them it finds what hides deeper. */
const RUNS = Number(process.env['DELIVERY_MODEL_RUNS'] ?? 100);
const TIMEOUT_MS = 120_000 + RUNS * 600;
const LIMIT_TICKS = 900;

function scenarioOf({ strategies: [first], routed, replicas, autoPromote }: Run): Scenario {
  return {
    strategy: first,
    artifact: 'image',
    routed,
    replicas,
    services: 1,
    fate: 'good',
    standing: 'sound',
    amended: false,
    lagging: false,
    slices: 'seen',
    replacing: 'surging',
    capacity: 'any',
    startupMs: 2000,
    failsAtMs: 0,
    policy: {
      onFailure: 'RollBack',
      drainSeconds: 2,
      bakeSeconds: 0,
      blueGreen: { bakeSeconds: 2, autoPromote },
      steps: [{ weight: 25, pauseSeconds: 2 }],
    },
  };
}

function simulate(plan: Run): void {
  const { strategies, comesAt, aborts, pauses, sleepers, replicas } = plan;
  const simulation = createSimulation(scenarioOf(plan));
  const { store } = simulation;
  const asleep: { readonly wakesAt: number; readonly name: Name; readonly changes: readonly Change[] }[] = [];

  function pass(): void {
    simulation.nowMs += 1000;
    simulation.machinery.tick(simulation.nowMs);
  }

  function createRival(): void {
    store.create(deliveryJobKind, {
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'DeliveryJob',
      metadata: { name: 'rival', namespace: 'default', finalizers: [finalizers.history] },
      spec: {
        serviceName: 'cart',
        operation: 'Deploy',
        version: '3',
        strategy: strategies[1],
        artifact: { type: 'image', url: 'registry.example.com/shop:3' },
        abort: false,
        promote: false,
      },
    });
  }

  const holder = () => {
    const deployment = simulation.deployment();
    return deployment === undefined ? undefined : claimOn(deployment)?.name;
  };

  /** What is the user's is written by who has the Deployment, and by nobody else. */
  function write(change: Change, writer: Name): boolean {
    const before = holder();
    try {
      store.apply(change);
    } catch (error) {
      if (error instanceof RefusedError) return false;
      throw error;
    }
    if (change.action === 'patch' && change.kind !== deliveryJobKind && isUsers(change)) {
      const isHolder = before === writer || holder() === writer;
      if (!isHolder) throw new Error(`${writer} writes what is ${before}'s: ${JSON.stringify(change.patch)}`);
    }
    for (const service of userServices(simulation))
      expect(simulation.serving(service).ready).toBeGreaterThanOrEqual(replicas);
    expect(NAMES.filter(isAtIt).length).toBeLessThanOrEqual(1);
    return true;
  }

  /** One that has let go of the Deployment has nothing left but to say that it has ended. */
  function isAtIt(of: Name): boolean {
    const job = simulation.job(of);
    const stage = job?.status?.stage;
    if (job === undefined || isFinished(job) || stage === undefined) return false;
    return stage !== 'Queued' && stage !== 'Preparing' && (stage !== 'Finishing' || holder() === of);
  }

  function writeAll(changes: readonly Change[], writer: Name): void {
    for (const change of changes) {
      if (!write(change, writer) && !(change.action === 'patch' && change.independent === true)) return;
    }
  }

  function reconcile(of: Name): void {
    for (let round = 0; round < 6; round += 1) {
      const snapshot = simulation.observe(of);
      if (snapshot === undefined) return;
      const { changes } = planJob(snapshot);
      writeAll(changes, of);
      if (changes.length === 0) return;
    }
  }

  for (let count = 0; count < 10; count += 1) pass();
  for (let now = 0; now < LIMIT_TICKS; now += 1) {
    pass();
    if (now === comesAt) createRival();
    for (const each of NAMES) {
      const isAborted = aborts.some((abort) => abort.name === each && abort.tick === now);
      if (isAborted) store.patch(deliveryJobKind, each, { spec: { abort: true } });
      if (simulation.job(each)?.status?.phase === 'Paused')
        store.patch(deliveryJobKind, each, { spec: { promote: true } });
    }
    for (const sleeper of sleepers.filter(({ tick }) => tick === now)) {
      const snapshot = simulation.observe(sleeper.name);
      const changes = snapshot === undefined ? [] : planJob(snapshot).changes;
      asleep.push({ wakesAt: now + sleeper.delayTicks, name: sleeper.name, changes });
    }
    const isSeen = (each: Name) =>
      !pauses.some((pause) => pause.name === each && now >= pause.tick && now < pause.tick + pause.ticks);
    NAMES.filter(isSeen).forEach(reconcile);
    for (const { name: writer, changes } of asleep.filter(({ wakesAt }) => wakesAt === now)) writeAll(changes, writer);
  }

  const jobs = NAMES.map((each) => simulation.job(each));
  for (const job of jobs) {
    expect(job?.status?.phase).toMatch(/^(Succeeded|RolledBack|Failed)$/);
    expect(job?.metadata.finalizers).not.toContain(finalizers.delivery);
  }
  // A sleeper may have claimed it for a job that had ended by then: the next one takes that over.
  const isClaimed = simulation.deployment()?.metadata.annotations?.[annotations.delivering] !== undefined;
  expect(isClaimed && sleepers.length === 0).toBe(false);
  const extras = store.list(deploymentKind).filter(({ metadata }) => metadata.labels?.[labels.job] !== undefined);
  expect(extras.filter(({ spec }) => spec.replicas !== 0)).toEqual([]);
  for (const { spec } of store.list(serviceKind)) expect(spec?.selector).not.toHaveProperty('pod-template-hash');
  const succeeded = jobs.filter((job) => job?.status?.phase === 'Succeeded');
  const last = succeeded
    .toSorted((a, b) => ((a?.status?.finishedAt ?? '') < (b?.status?.finishedAt ?? '') ? -1 : 1))
    .at(-1);
  const image = last === undefined ? 'registry.example.com/shop:1' : `registry.example.com/shop:${last.spec.version}`;
  expect(simulation.deployment()?.spec.template.spec.containers[0]?.image).toBe(image);
  expect(simulation.deployment()?.metadata.annotations?.[annotations.version]).toBe(last?.spec.version);
}

function isUsers(change: Change & { action: 'patch' }): boolean {
  return change.object.metadata.labels?.[labels.job] === undefined;
}

test(
  'what belongs to a Deployment is written by one job at a time, whoever else wants it and however late',
  () => {
    expect.hasAssertions();
    fc.assert(fc.property(run, simulate), { numRuns: RUNS });
  },
  TIMEOUT_MS,
);
