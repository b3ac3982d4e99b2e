import { annotations, deliveryJobKind, labels } from '@rollcall/crds/kinds.ts';
import { dueChecks } from '@rollcall/operator/delivery/checks/verification.ts';
import { planJob } from '@rollcall/operator/delivery/job/plan.ts';
import { isFinished } from '@rollcall/operator/delivery/start/queue.ts';
import { isSameJson } from '@rollcall/operator/delivery/workload/fingerprint.ts';
import type { Change } from '@rollcall/operator/runtime/decision.ts';
import {
  controllerRevisionKind,
  deploymentKind,
  httpRouteKind,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  belongings,
  createSimulation,
  mostExtra,
  NEW_IMAGE,
  OLD_IMAGE,
  type Scenario,
  type Simulation,
  userServices,
} from '../../support/delivery-simulation/simulation.ts';
import { RefusedError } from '../../support/delivery-simulation/store.ts';

/*
 * One job, one Deployment with its controller, and surroundings that are unkind to both: new versions that fail in every way, an
 * autoscaler, operators that die between any two writes, operators that sleep on a decision and act on it much later, users
 * who abort, promote, delete, edit. Time goes in seconds.
 */

const RUNS = Number(process.env['DELIVERY_MODEL_RUNS'] ?? 300);
/** Some seconds on an idle machine. */
const TIMEOUT_MS = 120_000 + RUNS * 200;
const TICK_MS = 1000;
const LIMIT_TICKS = 900;
/** A scaled-up Deployment has so long until its new pods are expected. */
const SCALE_MS = 45_000;
/**
 * With a rolling update under way its controller may give new pods to a version that never becomes
 * ready.
 */
const ROLLING_SCALE_MS = 3 * SCALE_MS;

type WorldEvent =
  | { readonly type: 'abort' | 'delete job' | 'promote' }
  | { readonly type: 'scale'; readonly replicas: number }
  /** The leader dies after so many writes of its next decision. */
  | { readonly type: 'crash'; readonly writes: number }
  /** Another operator, which also believes it leads, decides now and writes later. */
  | { readonly type: 'sleeper'; readonly delayTicks: number }
  /** A node is drained: pods of the new version, or of the old one, are deleted. */
  | { readonly type: 'evict'; readonly isNew: boolean; readonly count: number }
  | { readonly type: 'outside'; readonly what: OutsideEdit };

type OutsideEdit =
  | 'template'
  | 'restart annotation'
  | 'template undone'
  | 'selector'
  | 'unpin'
  | 'unclaim'
  | 'route'
  | 'route around the canary'
  | 'delete deployment'
  | 'delete extra'
  | 'scale extra'
  | 'pause'
  | 'delete record'
  | 'delete service'
  | 'new service';

const worldEvent: fc.Arbitrary<WorldEvent> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('abort', 'delete job', 'promote') }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('scale' as const), replicas: fc.integer({ min: 0, max: 8 }) }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('crash' as const), writes: fc.integer({ min: 0, max: 3 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('sleeper' as const),
      delayTicks: fc.integer({ min: 0, max: 60 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('evict' as const),
      isNew: fc.boolean(),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('outside' as const),
      what: fc.constantFrom<OutsideEdit>(
        'template',
        'restart annotation',
        'template undone',
        'selector',
        'unpin',
        'unclaim',
        'route',
        'route around the canary',
        'delete deployment',
        'delete extra',
        'scale extra',
        'pause',
        'delete record',
        'delete service',
        'new service',
      ),
    }),
  },
);

const scenario: fc.Arbitrary<Scenario> = fc.record({
  strategy: fc.constantFrom('Rolling', 'BlueGreen', 'Canary'),
  artifact: fc.constantFrom('image', 'image', 'image', 'binary', 'same image'),
  routed: fc.boolean(),
  replicas: fc.integer({ min: 0, max: 6 }),
  services: fc.integer({ min: 0, max: 2 }),
  fate: fc.constantFrom(
    'good',
    'good',
    'good',
    'image missing',
    'never ready',
    'crashes at once',
    'crashes later',
    'unready later',
  ),
  standing: fc.constantFrom('sound', 'sound', 'sound', 'short', 'dead'),
  amended: fc.boolean(),
  lagging: fc.boolean(),
  slices: fc.constantFrom('seen', 'at times', 'forbidden'),
  replacing: fc.constantFrom('surging', 'surging', 'one by one'),
  capacity: fc.constantFrom('any', 'any', 'tight'),
  startupMs: fc.integer({ min: 0, max: 8 }).map((seconds) => seconds * 1000),
  failsAtMs: fc.integer({ min: 5, max: 60 }).map((seconds) => seconds * 1000),
  policy: fc.record({
    onFailure: fc.constantFrom('RollBack', 'Hold'),
    drainSeconds: fc.integer({ min: 0, max: 8 }),
    bakeSeconds: fc.constantFrom(0, 5),
    analysis: fc.constantFrom(
      [],
      [{ name: 'check', initialDelaySeconds: 1, intervalSeconds: 2, count: 2, failureLimit: 0 }],
    ),
    blueGreen: fc.record({ bakeSeconds: fc.integer({ min: 0, max: 8 }), autoPromote: fc.boolean() }),
    maxSurge: fc.constantFrom(undefined, undefined, 1, 3, '50%'),
    steps: fc.array(
      fc.oneof(
        fc.record({ weight: fc.constantFrom(0, 10, 25, 50, 80, 100), pauseSeconds: fc.integer({ min: 0, max: 5 }) }),
        fc.record({ weight: fc.constantFrom(10, 50, 100) }),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  }),
});

/**
 * The API server takes no writes of a kind, from the operator: for lack of a right, or because
 * somebody reviews them.
 */
const refusal = fc.record({
  kind: fc.constantFrom('Service', 'Deployment', 'HTTPRoute', 'ControllerRevision', 'DeliveryJob'),
  fromTick: fc.integer({ min: 0, max: 60 }),
  ticks: fc.constantFrom(20, 150, Infinity),
});
type Refusal = typeof refusal extends fc.Arbitrary<infer R> ? R : never;

const run = fc.record({
  scenario,
  refusal: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: refusal }),
  checksPass: fc.constantFrom(true, true, true, false),
  events: fc.array(fc.record({ tick: fc.integer({ min: 0, max: 90 }), event: worldEvent }), { maxLength: 6 }),
});
type Run = typeof run extends fc.Arbitrary<infer R> ? R : never;

/** Writes that are refused once something has happened are those that would make up for it. */
const runOfRefusals = fc
  .tuple(run, refusal, fc.nat(), fc.integer({ min: 1, max: 4 }))
  .map(([any, refused, which, delay]): Run => {
    const cause = any.events[which % Math.max(1, any.events.length)];
    return cause === undefined ? any : { ...any, refusal: { ...refused, fromTick: cause.tick + delay } };
  });

/** How many of so many old pods work. */
function sound({ standing, artifact }: Scenario, replicas: number): number {
  if (standing === 'sound' || artifact !== 'image') return replicas;
  return standing === 'dead' ? 0 : Math.max(0, replicas - 1);
}

interface Sleeper {
  readonly wakesAt: number;
  readonly changes: readonly Change[];
}

function simulate({ scenario, refusal, checksPass, events }: Run): void {
  const simulation = createSimulation(scenario);
  for (let tick = 0; tick < 20; tick += 1) {
    simulation.nowMs += TICK_MS;
    simulation.machinery.tick(simulation.nowMs);
  }
  const before = belongings(simulation);
  const sleepers: Sleeper[] = [];
  const scaled: { readonly atMs: number; readonly replicas: number }[] = [{ atMs: 0, replicas: scenario.replicas }];
  let crashAfter: number | undefined;
  let outside: OutsideEdit | undefined;
  let editedAt: string | undefined;
  let pausedTicks = 0;
  let doneTicks = 0;
  let currentTick = 0;
  let isRefused = false;

  /**
   * The fewest that were asked for lately, pods needing time to come up; of a version that was
   * short before no more than there were.
   */
  function required(): number {
    const sinceMs = simulation.nowMs - (simulation.isRolling() ? ROLLING_SCALE_MS : SCALE_MS);
    const recent = scaled.filter((_, index) => (scaled[index + 1]?.atMs ?? Infinity) > sinceMs);
    const all = sound(scenario, Math.min(...recent.map(({ replicas }) => replicas)));
    // On the way back as many may be missing as on the way forward.
    const isByOwn = simulation.isRolling() || simulation.job()?.status?.failure !== undefined;
    return isByOwn && scenario.replacing === 'one by one' ? all - 1 : all;
  }

  function check(context: string): void {
    // A version that goes bad after it was delivered is nobody's fault.
    const isDelivered = simulation.job()?.status?.phase === 'Succeeded' && scenario.fate !== 'good';
    if (outside !== undefined || isDelivered) return;
    // Who may not write can neither mend what breaks nor follow who scales.
    if (isRefused && (scenario.fate !== 'good' || scaled.length > 1)) return;
    for (const service of userServices(simulation)) {
      const { ready, lost } = simulation.serving(service);
      if (ready + lost < required()) {
        throw new Error(
          `${context}: ${ready} pods serve ${service.metadata.name}, ${required()} are asked for; ${JSON.stringify(service.spec?.selector)} ${JSON.stringify(simulation.job()?.status)}`,
        );
      }
    }
    checkRoutes(simulation, context);
    if (scenario.replacing === 'one by one') checkSurge(context);
    const isLimited =
      scenario.policy.maxSurge !== undefined && scenario.strategy === 'Canary' && !simulation.isRolling();
    // Old pods that were missing before come up as the Deployment says, at the end of the job.
    if (isLimited && scenario.standing === 'sound') checkExtra(context);
  }

  /** A Deployment whose pods each have a port of their node never asks for one more. */
  function checkSurge(context: string): void {
    const { uid = '' } = simulation.deployment()?.metadata ?? {};
    const own = simulation.machinery.replicaSets.filter(({ owner }) => owner === uid);
    const wanted = own.reduce((sum, { replicas }) => sum + replicas, 0);
    const most = Math.max(...scaled.map(({ replicas }) => replicas));
    if (wanted > most) throw new Error(`${context}: the Deployment has ${wanted} pods instead of ${most}`);
  }

  /** With `maxSurge` there are never more pods than it adds to what the Deployment asks for. */
  function checkExtra(context: string): void {
    const wanted = simulation.machinery.replicaSets.reduce((sum, { replicas }) => sum + replicas, 0);
    const most = Math.max(...scaled.map(({ replicas }) => replicas));
    const allowed = most + mostExtra(scenario, most);
    if (wanted > allowed) throw new Error(`${context}: there are to be ${wanted} pods, more than ${allowed}`);
  }

  function write(change: Change, who: string): boolean {
    if (refusal !== undefined && isTheOne(refusal, change, currentTick)) {
      isRefused = true;
      return false;
    }
    try {
      simulation.store.apply(change);
    } catch (error) {
      if (error instanceof RefusedError) return false;
      throw error;
    }
    if (change.action !== 'event') check(`${who} ${change.action} ${change.kind.kind}`);
    return true;
  }

  /** As the controller does. @returns whether all were made. */
  function writeAll(changes: readonly Change[], who: string): boolean {
    let isWhole = true;
    for (const change of changes) {
      if (write(change, who)) continue;
      isWhole = false;
      if (change.action !== 'patch' || change.independent !== true) break;
    }
    return isWhole;
  }

  function reconcile(): void {
    for (let round = 0; round < 7; round += 1) {
      const snapshot = simulation.observe();
      if (snapshot === undefined) return;
      const { changes } = planJob(snapshot);
      const allowed = crashAfter === undefined ? changes : changes.slice(0, crashAfter);
      const isCrash = crashAfter !== undefined;
      crashAfter = undefined;
      const made = writeAll(allowed, 'leader');
      if (isCrash) return;
      if (made) forget(simulation, snapshot.measurements.length);
      simulation.refusal = made ? undefined : { isInvalid: false, message: 'refused' };
      if (changes.length === 0) return;
    }
  }

  function happen(event: WorldEvent, tick: number): void {
    switch (event.type) {
      case 'abort':
        return simulation.store.patch(deliveryJobKind, 'job', { spec: { abort: true } });
      case 'promote':
        return simulation.store.patch(deliveryJobKind, 'job', { spec: { promote: true } });
      case 'delete job':
        return simulation.store.delete(deliveryJobKind, 'job');
      case 'scale':
        if (simulation.deployment() === undefined) return;
        scaled.push({ atMs: simulation.nowMs, replicas: event.replicas });
        return simulation.store.patch(deploymentKind, 'shop', { spec: { replicas: event.replicas } });
      case 'crash':
        crashAfter = event.writes;
        return;
      case 'sleeper': {
        const snapshot = simulation.observe();
        if (snapshot === undefined) return;
        const { changes } = planJob(snapshot);
        sleepers.push({ wakesAt: tick + event.delayTicks, changes });
        return;
      }
      case 'evict': {
        const wanted = event.isNew ? NEW_IMAGE : OLD_IMAGE;
        const sets = simulation.machinery.replicaSets.filter(
          ({ template }) => template.spec.containers[0]?.image === wanted,
        );
        for (const set of sets) simulation.machinery.evict(set, event.count, simulation.nowMs);
        return;
      }
      case 'outside':
        if (!editFromOutside(simulation, event.what)) return;
        outside = event.what;
        editedAt = simulation.job()?.status?.stage;
    }
  }

  for (let tick = 0; tick < LIMIT_TICKS; tick += 1) {
    currentTick = tick;
    simulation.nowMs += TICK_MS;
    for (const { event } of events.filter((planned) => planned.tick === tick)) {
      happen(event, tick);
      check(`event ${event.type}`);
    }
    simulation.machinery.tick(simulation.nowMs);
    check('controllers');
    measure(simulation, checksPass);
    reconcile();
    for (const sleeper of sleepers.filter(({ wakesAt }) => wakesAt === tick)) {
      writeAll(sleeper.changes, 'sleeper');
    }
    const { status, spec, metadata } = simulation.job() ?? { metadata: {} };
    pausedTicks = status?.phase === 'Paused' ? pausedTicks + 1 : 0;
    // Whose promote is not cleared, because nobody may, clears it himself.
    if (pausedTicks > 15 && (spec?.promote === false || pausedTicks > 20))
      simulation.store.patch(deliveryJobKind, 'job', { spec: { promote: spec?.promote === false } });
    const isDone =
      status !== undefined &&
      isFinished({ status } as never) &&
      (metadata.finalizers?.includes('rollcall.dev/delivery') !== true || (isRefused && refusal?.ticks === Infinity));
    doneTicks = isDone ? doneTicks + 1 : 0;
    const isQuiet = [...events, ...sleepers.map(({ wakesAt }) => ({ tick: wakesAt }))].every(
      (planned) => planned.tick < tick,
    );
    if (doneTicks > 5 && isQuiet) break;
  }
  // What was scaled last comes up.
  for (let tick = 0; tick < 30; tick += 1) {
    simulation.nowMs += TICK_MS;
    simulation.machinery.tick(simulation.nowMs);
  }
  const isForGood = isRefused && refusal?.ticks === Infinity;
  judge({
    simulation,
    before,
    outside,
    editedAt,
    scenario,
    refused: isRefused ? (isForGood ? 'for good' : 'for a while') : 'never',
    isEvent: (type) => events.some(({ event }) => event.type === type),
    isQuiet: events.length === 0 && checksPass,
  });
}

function isTheOne({ kind, fromTick, ticks }: Refusal, change: Change, tick: number): boolean {
  // The status is another resource.
  if (change.action === 'event' || change.action === 'status' || change.kind.kind !== kind) return false;
  return tick >= fromTick && tick < fromTick + ticks;
}

function forget(simulation: Simulation, count: number): void {
  simulation.measurements.splice(0, count);
}

function measure(simulation: Simulation, passes: boolean): void {
  if (!['Verifying', 'Paused'].includes(simulation.job()?.status?.phase ?? '')) return;
  const snapshot = simulation.observe();
  if (snapshot === undefined) return;
  for (const { check, dueAt } of dueChecks(snapshot)) {
    const isDue = dueAt.getTime() <= simulation.nowMs;
    if (isDue)
      simulation.measurements.push({
        check: check.name,
        passed: passes,
        at: new Date(simulation.nowMs),
        message: 'measured',
      });
  }
}

/** A share of the traffic never goes to a Service without pods. */
function checkRoutes(simulation: Simulation, context: string): void {
  for (const { spec } of simulation.store.list(httpRouteKind)) {
    for (const { name, weight = 1 } of spec.rules?.flatMap(({ backendRefs }) => backendRefs ?? []) ?? []) {
      if (!name.endsWith('-canary') || weight === 0) continue;
      const service = simulation.store.find(serviceKind, name);
      const { ready, lost } = service === undefined ? { ready: 0, lost: 0 } : simulation.serving(service);
      const isAsked = (simulation.deployment()?.spec.replicas ?? 0) > 0;
      if (ready + lost === 0 && isAsked)
        throw new Error(`${context}: ${weight} of the weight goes to ${name}, which has no pods`);
    }
  }
}

const lateService = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'late', namespace: 'default', annotations: { note: 'of the user' } },
  spec: { ports: [{ port: 80 }], selector: { app: 'shop' } },
};
const beforeCutOver: ReadonlySet<string | undefined> = new Set([
  'Pinning',
  'BringingUp',
  'Testing',
  'Gate',
  'Routing',
  'Stepping',
  'StepVerifying',
  'StepPausing',
  'Withdrawing',
  'Shrinking',
  'FullUp',
]);

/** @returns whether there was anything to edit. */
function editFromOutside(simulation: Simulation, what: OutsideEdit): boolean {
  const { store } = simulation;
  const extra = store.list(deploymentKind).find(({ metadata }) => metadata.name !== 'shop');
  const containers = simulation.deployment()?.spec.template.spec.containers ?? [];
  if (simulation.job() === undefined || simulation.deployment() === undefined) return false;
  switch (what) {
    case 'template': {
      const changed = containers.map((container) => ({ ...container, env: [{ name: 'BY', value: 'user' }] }));
      store.patch(deploymentKind, 'shop', { spec: { template: { spec: { containers: changed } } } });
      return true;
    }
    case 'restart annotation':
      store.patch(deploymentKind, 'shop', {
        spec: { template: { metadata: { annotations: { restartedAt: 'now' } } } },
      });
      return true;
    case 'template undone': {
      const changed = containers.map((container) => ({ ...container, image: OLD_IMAGE }));
      store.patch(deploymentKind, 'shop', { spec: { template: { spec: { containers: changed } } } });
      return true;
    }
    case 'selector':
      store.patch(serviceKind, 'shop-0', { spec: { selector: { by: 'user' } } });
      return true;
    case 'unpin':
      store.patch(serviceKind, 'shop-0', { spec: { selector: { 'pod-template-hash': null } } });
      return true;
    case 'unclaim':
      store.patch(deploymentKind, 'shop', { metadata: { annotations: { [annotations.delivering]: null } } });
      return true;
    case 'route':
      store.patch(httpRouteKind, 'shop', { spec: { rules: [{ backendRefs: [{ name: 'elsewhere', port: 1 }] }] } });
      return true;
    case 'route around the canary': {
      // As `kubectl edit` does: what it shows is kept, the job's weights among it.
      const rules = store.find(httpRouteKind, 'shop')?.spec.rules ?? [];
      const filters = [{ type: 'ByUser' }];
      store.patch(httpRouteKind, 'shop', { spec: { rules: rules.map((rule) => ({ ...rule, filters })) } });
      return rules.length > 0;
    }
    case 'delete deployment':
      store.delete(deploymentKind, 'shop');
      return true;
    case 'delete extra':
      if (extra !== undefined) store.delete(deploymentKind, extra.metadata.name);
      return extra !== undefined;
    case 'scale extra':
      if (extra !== undefined) store.patch(deploymentKind, extra.metadata.name, { spec: { replicas: 1 } });
      return extra !== undefined;
    case 'pause':
      store.patch(deploymentKind, 'shop', { spec: { paused: true } });
      return true;
    case 'delete record':
      store.delete(controllerRevisionKind, 'job');
      return true;
    case 'new service':
      if (store.find(serviceKind, 'late') === undefined) store.create(serviceKind, lateService);
      return true;
    case 'delete service':
    default:
      store.delete(serviceKind, 'shop-1');
      return true;
  }
}

interface Outcome {
  readonly simulation: Simulation;
  readonly before: unknown;
  readonly outside: OutsideEdit | undefined;
  /** The stage of the job at the last edit. */
  readonly editedAt: string | undefined;
  readonly scenario: Scenario;
  readonly refused: 'never' | 'for a while' | 'for good';
  readonly isEvent: (type: WorldEvent['type']) => boolean;
  /** Whether nothing came between. */
  readonly isQuiet: boolean;
}

function judge({ simulation, before, outside, editedAt, scenario, refused, isEvent, isQuiet }: Outcome): void {
  const job = simulation.job();
  const status = job?.status;
  expect(status?.phase, `ends: ${JSON.stringify(status)}`).toMatch(/^(Succeeded|RolledBack|Failed)$/);
  if (refused === 'for good') return;
  const extras = simulation.store
    .list(deploymentKind)
    .filter(({ metadata }) => metadata.labels?.[labels.job] !== undefined);
  // What is paused on the way back may have no pods that could replace the job's.
  const isShort =
    (scenario.standing !== 'sound' || outside === 'pause') &&
    oldReady(simulation) < (simulation.deployment()?.spec.replicas ?? 0);
  if (isShort && status?.failure?.reason === 'RollbackIncomplete' && extras.some(({ spec }) => spec.replicas !== 0)) {
    // Pods of the old version that fail while the job runs cannot come back: it keeps its own, and
    // itself, until somebody mends that.
    expect(job?.metadata.finalizers).toContain('rollcall.dev/delivery');
    expect(simulation.deployment()?.spec.template.spec.containers[0]?.image).toBe(OLD_IMAGE);
    for (const service of userServices(simulation)) expect(simulation.serving(service).ready).toBeGreaterThan(0);
    return;
  }
  expect(job?.metadata.finalizers).not.toContain('rollcall.dev/delivery');
  // What an operator makes after the job has ended is without pods.
  expect(extras.filter(({ spec }) => spec.replicas !== 0)).toEqual([]);
  if (!isEvent('sleeper')) {
    expect(extras).toEqual([]);
    expect(
      simulation.store.list(serviceKind).filter(({ metadata }) => metadata.labels?.[labels.job] !== undefined),
    ).toEqual([]);
  }
  for (const service of userServices(simulation)) {
    expect(service.spec?.selector).not.toHaveProperty('pod-template-hash');
    expect(service.metadata.annotations).not.toHaveProperty('rollcall.dev/rolling-back');
  }
  const deployment = simulation.deployment();
  expect(deployment?.metadata.annotations ?? {}).not.toHaveProperty('rollcall.dev/rolling-back');
  // What users do with a version that was delivered is theirs, and so is what they do once the job
  // has reconciled for the last time.
  const isTheirs =
    editedAt === 'Finishing' ||
    editedAt === 'Failed' ||
    editedAt === 'RolledBack' ||
    // Without its record nobody knows which version ran before.
    outside === 'delete record';
  if (!isTheirs && deployment !== undefined && scenario.artifact === 'image' && status?.phase !== 'Succeeded') {
    const isNew = deployment.spec.template.spec.containers[0]?.image === NEW_IMAGE;
    expect(deployment.metadata.annotations?.['rollcall.dev/version']).toBe(isNew ? '2' : undefined);
  }
  expect(deployment?.metadata.annotations ?? {}).not.toHaveProperty('rollcall.dev/delivering');
  // An operator that slept may have gone on before the new Service was seen.
  if (outside === 'new service' && beforeCutOver.has(editedAt) && !isEvent('sleeper') && !isEvent('crash')) {
    expect(status?.phase).not.toBe('Succeeded');
  }
  if (outside !== undefined) return judgeEdited(simulation, outside);
  // What could not be restored in time is restored as soon as that is allowed.
  if (status?.failure?.reason === 'RollbackIncomplete') {
    expect({ ...(belongings(simulation) as object), services: userBelongings(belongings(simulation)) }).toStrictEqual(
      before,
    );
  }
  if (refused !== 'never' && status?.phase === 'Failed') return;
  const image = status?.phase === 'Succeeded' && scenario.artifact === 'image' ? NEW_IMAGE : OLD_IMAGE;
  for (const service of userServices(simulation)) {
    if (status?.phase === 'Succeeded' && scenario.fate !== 'good') continue;
    const { replicas = 0 } = deployment?.spec ?? {};
    const { images, ready } = simulation.serving(service);
    if (image === NEW_IMAGE) expect(ready).toBe(replicas);
    // Better pods of the new version than none.
    else if (scenario.standing !== 'sound' && sound(scenario, Math.min(replicas, scenario.replicas)) === 0) continue;
    // Or than those of the old one that fell over once the job had begun: Kubernetes keeps the
    // others in their stead.
    if (image === OLD_IMAGE && isShort && images.length > 1) {
      expect(ready).toBeLessThanOrEqual(replicas);
      continue;
    }
    expect(images).toEqual(replicas === 0 ? [] : [image]);
  }
  const after = belongings(simulation);
  const withoutMade = { ...(after as object), services: userBelongings(after) };
  if (status?.phase === 'Succeeded') {
    expect(deployment?.metadata.annotations?.['rollcall.dev/version']).toBe('2');
    expect(shapeOf(withoutMade)).toEqual(shapeOf(before));
  } else {
    expect(withoutMade).toStrictEqual(before);
  }
  if (
    refused === 'never' &&
    scenario.fate === 'good' &&
    !isEvent('abort') &&
    !isEvent('delete job') &&
    status?.phase !== 'Succeeded'
  ) {
    // Capacity for twice the pods is enough.
    const isEasy =
      isQuiet && scenario.standing === 'sound' && scenario.services > 0 && scenario.strategy === 'BlueGreen';
    expect(isEasy).toBe(false);
    // Blue-green has nothing to switch without a Service.
    const isPointless = scenario.strategy === 'BlueGreen' && scenario.services === 0;
    const expected = isPointless ? /ChecksFailed|Progress|StrategyNotSupported/ : /ChecksFailed|Progress/;
    // Without new pods, and with too few old ones to wait for their successors, a job goes back: as
    // far as it can, where pods of the old version do not work either.
    const emptied = scenario.standing === 'sound' ? /PodsNotReady/ : /PodsNotReady|RollbackIncomplete/;
    if (isEvent('evict') && emptied.test(status?.failure?.reason ?? '')) return;
    // Where none may come beside them, old pods that fall over keep the new ones that are ready.
    if (isShort && scenario.replacing === 'one by one' && status?.failure?.reason === 'RollbackIncomplete') return;
    expect(status?.failure?.reason).toMatch(expected);
  }
}

/** Pods of the old version that are ready. */
function oldReady(simulation: Simulation): number {
  const pods = simulation.machinery.replicaSets.flatMap((set) => set.pods);
  return pods.filter(({ image, ready }) => ready && image === OLD_IMAGE).length;
}

function userBelongings(after: unknown): unknown {
  return (after as { services: { name: string }[] }).services.filter(({ name }) => !name.endsWith('-canary'));
}

/** All but the version. */
function shapeOf(all: unknown): unknown {
  const { deployment, ...rest } = all as { deployment: { strategy: unknown; progressDeadlineSeconds: unknown } };
  return { ...rest, strategy: deployment.strategy, progressDeadlineSeconds: deployment.progressDeadlineSeconds };
}

function judgeEdited(simulation: Simulation, outside: OutsideEdit): void {
  const { template } = simulation.deployment()?.spec ?? {};
  const service = simulation.store.find(serviceKind, 'shop-0');
  if (outside === 'template')
    expect(template?.spec.containers[0]).toMatchObject({ env: [{ name: 'BY', value: 'user' }] });
  if (outside === 'selector' && service !== undefined) expect(service.spec?.selector).toMatchObject({ by: 'user' });
  for (const { spec } of simulation.store.list(httpRouteKind)) {
    const backends = spec.rules?.flatMap(({ backendRefs = [] }) => backendRefs) ?? [];
    expect(backends.map(({ name }) => name)).not.toContain('shop-0-canary');
    if (outside !== 'route around the canary') continue;
    expect(spec.rules).toMatchObject([{ filters: [{ type: 'ByUser' }] }]);
    // Everything that was the Service's is its own again.
    const weightOf = (wanted: string) => backends.find(({ name }) => name === wanted)?.weight ?? 0;
    expect(weightOf('shop-0')).toBe(3 * weightOf('other'));
  }
  if (outside === 'route') {
    for (const { spec } of simulation.store.list(httpRouteKind)) {
      expect(isSameJson(spec.rules, [{ backendRefs: [{ name: 'elsewhere', port: 1 }] }])).toBe(true);
    }
  }
}

test(
  'whatever happens, a job ends, and its service is served throughout by as many pods as it asks for',
  () => {
    expect.hasAssertions();
    fc.assert(fc.property(fc.oneof({ weight: 4, arbitrary: run }, { weight: 1, arbitrary: runOfRefusals }), simulate), {
      numRuns: RUNS,
    });
  },
  TIMEOUT_MS,
);
