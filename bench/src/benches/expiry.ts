import { annotations } from '@rollcall/crds/kinds.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { startLoadGenerator } from '../load/load-generator.ts';
import { quantile } from '../load/statistics.ts';
import { type LoadResult, type NameRange, objectOf, type Pace } from '../load/tasks.ts';
import { atMost, figure, type Row } from '../report.ts';
import { type ExpiryObserver, observeExpiries } from '../stage/expiries.ts';
import { clear, forEachInFlight, LONG_LIVED, seed, settled } from '../stage/fleet.ts';
import { bucketQuantile } from '../stage/metrics.ts';
import type { RollcallSubject, Stage } from '../stage/stage.ts';

const NAMESPACE = 'bench-expiry';
const LATENESS = 'rollcall_expiry_lateness_seconds';
const EXPIRIES_PER_SECOND = 100;
const EXPIRIES = 3000;
const RENEWALS_PER_SECOND = 350;
const STEADY_TTL_SECONDS = 5;
const MASS_TTL_SECONDS = 60;
const PATIENCE_MS = 180_000;

/** How late registrations expire whose TTL ends steadily or all at once, among many. */
export const expiry: Bench = {
  name: 'expiry',
  measures: 'lateness of expiry: 100 expiries a second among all others, and all at once',
  async run({ stage, services, perName, log }: BenchContext) {
    await stage.createNamespace(NAMESPACE);
    const operator = await stage.startOperator({ namespace: NAMESPACE });
    const connectedSinceMs = performance.now();
    const registry = await stage.startRegistry({ namespace: NAMESPACE });
    const expiries = Math.min(services, EXPIRIES);
    const living: NameRange = { prefix: 'svc-', first: 0, count: services, perName };
    const quiet: NameRange = { prefix: 'end-', first: 0, count: expiries, perName };
    const busy: NameRange = { prefix: 'end-', first: expiries, count: expiries, perName };
    for (const names of [living, quiet, busy]) await seed(stage, NAMESPACE, { names, life: LONG_LIVED });
    await settled({ registry, operator }, living, quiet, busy);
    await using observer = await observeExpiries(stage, NAMESPACE, registry);
    const scene: Scene = { stage, operator, observer };

    using generator = startLoadGenerator();
    const patches = (pace: Pace): Promise<LoadResult> =>
      generator.run({
        kind: 'leases',
        kubeconfigPath: stage.kubeconfigPath,
        namespace: NAMESPACE,
        names: living,
        connections: 32,
        pace,
      });
    const bare = await patches({ amount: Math.min(services, EXPIRIES) });

    log(`expiry: ${expiries} expiries, ${EXPIRIES_PER_SECOND} a second`);
    const rows = [figure('Lease patches by a bare undici client, for comparison', bare.perSecond, '1/s')];
    rows.push(...(await expireSteadily(scene, quiet, 'steady')));
    log(`expiry: the same under ${RENEWALS_PER_SECOND} Lease renewals a second`);
    const durationMs = (expiries / EXPIRIES_PER_SECOND + STEADY_TTL_SECONDS) * 1000;
    const renewing = patches({ ratePerSecond: RENEWALS_PER_SECOND, durationMs });
    rows.push(...(await expireSteadily(scene, busy, 'steady, 350 renewals/s')));
    await renewing;
    const mistaken = [...observer.inCluster.keys()].filter((name) => name.startsWith(living.prefix)).length;
    rows.push(atMost(0, figure('expired while alive', mistaken, '')));

    await sleep(Math.max(0, connectedSinceMs + MASS_TTL_SECONDS * 1000 - performance.now()));
    log(`expiry: ${services} expire at once`);
    rows.push(...(await expireAtOnce(scene, living)));
    await Promise.all([operator.stop(), registry.stop()]);
    await clear(stage, NAMESPACE);
    return rows;
  },
};

interface Scene {
  readonly stage: Stage;
  readonly operator: RollcallSubject;
  readonly observer: ExpiryObserver;
}

/** Each service has its last heartbeat at a time of its own, with a short TTL. */
async function expireSteadily(scene: Scene, names: NameRange, title: string): Promise<Row[]> {
  const before = await scene.operator.metrics();
  const deadlines = new Map<string, number>();
  const startedAtMs = performance.now();
  const writes: Promise<void>[] = [];
  for (let index = 0; index < names.count; index += 1) {
    await sleep(Math.max(0, startedAtMs + (index * 1000) / EXPIRIES_PER_SECOND - performance.now()));
    const name = objectOf(names, index);
    deadlines.set(name, performance.now() + STEADY_TTL_SECONDS * 1000);
    writes.push(renew(scene.stage, name, { ttlSeconds: STEADY_TTL_SECONDS, ageMs: 0 }));
  }
  await Promise.all(writes);
  await allExpired(scene.observer, deadlines);
  const after = await scene.operator.metrics();
  const inCluster = latenessOf(deadlines, scene.observer.inCluster);
  const inRegistry = latenessOf(deadlines, scene.observer.inRegistry);
  return [
    atMost(
      1,
      figure(
        `${title}: p99 by the operator's histogram, at most`,
        bucketQuantile({ before, after }, LATENESS, 0.99),
        's',
      ),
    ),
    figure(`${title}: p50 until phase Expired is seen`, quantile(inCluster, 0.5) / 1000, 's'),
    atMost(1, figure(`${title}: p99 until phase Expired is seen`, quantile(inCluster, 0.99) / 1000, 's')),
    atMost(1, figure(`${title}: p99 until the registry's stream says so`, quantile(inRegistry, 0.99) / 1000, 's')),
    {
      ...figure(`${title}: earliest`, Math.min(...inCluster, ...inRegistry) / 1000, 's'),
      limit: '>= 0',
      met: Math.min(...inCluster, ...inRegistry) >= 0,
    },
  ];
}

/**
 * All services get the same deadline: each heartbeat that is written is said to be as old as the
 * first.
 */
async function expireAtOnce(scene: Scene, names: NameRange): Promise<Row[]> {
  const startedAtMs = performance.now();
  const deadlineMs = startedAtMs + MASS_TTL_SECONDS * 1000;
  const deadlines = new Map<string, number>();
  await forEachInFlight(names.count, 64, async (index) => {
    const name = objectOf(names, index);
    deadlines.set(name, deadlineMs);
    const ageMs = Math.round(performance.now() - startedAtMs);
    await renew(scene.stage, name, { ttlSeconds: MASS_TTL_SECONDS, ageMs });
  });
  if (performance.now() > deadlineMs)
    throw new Error('The machine is too slow: the deadline was over before all had it');
  const cpuBefore = await scene.operator.cpuMs();
  await allExpired(scene.observer, deadlines);
  const cpuMs = (await scene.operator.cpuMs()) - cpuBefore;
  const inCluster = latenessOf(deadlines, scene.observer.inCluster);
  const inRegistry = latenessOf(deadlines, scene.observer.inRegistry);
  return [
    atMost(30, figure('all at once: until the last is seen Expired', Math.max(...inCluster) / 1000, 's')),
    atMost(30, figure("all at once: until the registry's stream named the last", Math.max(...inRegistry) / 1000, 's')),
    figure('all at once: expiries', (names.count / Math.max(...inCluster)) * 1000, '1/s'),
    figure('all at once: CPU of the operator per expiry', (cpuMs * 1000) / names.count, 'µs'),
  ];
}

async function renew(
  stage: Stage,
  name: string,
  { ttlSeconds, ageMs }: { readonly ttlSeconds: number; readonly ageMs: number },
): Promise<void> {
  const renewTime = microTime(new Date(Date.now() - ageMs));
  await resourceClient(stage.kube, leaseKind, NAMESPACE).patch(name, {
    metadata: { annotations: { [annotations.heartbeatAgeMs]: String(ageMs) } },
    spec: { leaseDurationSeconds: ttlSeconds, renewTime },
  });
}

async function allExpired(observer: ExpiryObserver, deadlines: ReadonlyMap<string, number>): Promise<void> {
  const isSeen = (name: string): boolean => observer.inCluster.has(name) && observer.inRegistry.has(name);
  const last = Math.max(...deadlines.values());
  await waitUntil('all have expired', async () => [...deadlines.keys()].every(isSeen), {
    timeoutMs: last - performance.now() + PATIENCE_MS,
    intervalMs: 200,
  });
}

/** Milliseconds from its deadline until each was seen. */
function latenessOf(deadlines: ReadonlyMap<string, number>, seen: ReadonlyMap<string, number>): number[] {
  return [...deadlines].map(([name, deadlineMs]) => (seen.get(name) ?? Number.NaN) - deadlineMs);
}
