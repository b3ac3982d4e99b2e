import { labels } from '@rollcall/crds/kinds.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import {
  type Deployment,
  deploymentKind,
  type Pod,
  podKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { isReady, type World } from './world.ts';

/**
 * The three watches are not in step with one another: what is true in none of them for longer than
 * this is a fault.
 */
const SETTLE_MS = 400;

/**
 * Watches all the time that every service has as many ready pods to send its traffic to as its
 * Deployment asks for.
 */
export interface Guard {
  /** What was wrong and for how long it was seen; none when all is well. */
  faults(): readonly string[];
}

/**
 * @param names of services whose pods were ready when the guard was set up, and whose Deployments
 * have their names.
 */
export async function startGuard(world: World, names: readonly string[]): Promise<Guard> {
  const { namespace, onTestFinished } = world;
  const common = {
    connection: world.cluster.connection,
    namespace,
    clock: systemClock,
    log: createLogger('guard', 'silent'),
  };
  const pods = createInformer<Pod>({ ...common, kind: podKind });
  const services = createInformer<Service>({ ...common, kind: serviceKind });
  const deployments = createInformer<Deployment>({ ...common, kind: deploymentKind, labelSelector: labels.service });
  const all = [pods, services, deployments];
  for (const informer of all) informer.start();
  await Promise.all(all.map(({ synced }) => synced));
  const stopped = new AbortController();
  const faults = new Set<string>();
  const sinceMs = new Map<string, number>();

  function shortageOf(name: string): string | undefined {
    const service = services.store.get(`${namespace}/${name}`);
    const deployment = deployments.store.get(`${namespace}/${name}`);
    const selector = Object.entries(service?.spec?.selector ?? {});
    const wanted = deployment?.spec.replicas ?? 0;
    const serving = [...pods.store.values()].filter(
      (pod) => isReady(pod) && selector.every(([key, value]) => pod.metadata.labels?.[key] === value),
    );
    return serving.length >= wanted ? undefined : `${name}: ${serving.length} of ${wanted} pods serve`;
  }

  const watching = (async () => {
    while (await sleep(20, stopped.signal)) {
      for (const name of names) {
        const shortage = shortageOf(name);
        if (shortage === undefined || all.some((informer) => informer.connectivity() !== 'connected')) {
          sinceMs.delete(name);
          continue;
        }
        const since = sinceMs.get(name) ?? performance.now();
        sinceMs.set(name, since);
        if (performance.now() - since > SETTLE_MS) faults.add(shortage);
      }
    }
  })();
  onTestFinished(async () => {
    stopped.abort();
    await watching;
    await Promise.all(all.map((informer) => informer.stop()));
  });
  return { faults: () => [...faults] };
}
