import { annotations, labels, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import { collectionPath, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { instanceIdOf, type NameRange, nameOf, objectOf } from '../load/tasks.ts';
import { sumOf } from './metrics.ts';
import type { RollcallSubject, Stage } from './stage.ts';

const IN_FLIGHT = 64;
const SETTLE_TIMEOUT_MS = 400_000;
const HOUR_SECONDS = 3600;

/**
 * No bench lasts so long that these expire, and their last heartbeat is so old that the next one is
 * due.
 */
export const LONG_LIVED: Life = { ttlSeconds: 24 * HOUR_SECONDS, heartbeatAgeMs: 12 * HOUR_SECONDS * 1000 };

export interface Life {
  readonly ttlSeconds: number;
  /** How old the first heartbeat is said to be. */
  readonly heartbeatAgeMs: number;
}

/**
 * Makes registrations with their Leases at the API server, as the registry does.
 *
 * @returns how many a second.
 */
export async function seed(stage: Stage, namespace: string, fleet: { names: NameRange; life: Life }): Promise<number> {
  const registrations = resourceClient(stage.kube, serviceRegistrationKind, namespace);
  const leases = resourceClient(stage.kube, leaseKind, namespace);
  const startedAtMs = performance.now();
  const { names, life } = fleet;
  const { count, perName = 1 } = names;
  // One after the other those of a name: the first has its id.
  await forEachInFlight(Math.ceil(count / perName), IN_FLIGHT, async (nameIndex) => {
    let serviceId: string | undefined;
    for (let index = nameIndex * perName; index < Math.min(count, (nameIndex + 1) * perName); index += 1) {
      const registration = registrationOf({ names, index, life, serviceId });
      const { uid = '' } = (await registrations.create(registration)).metadata;
      serviceId ??= uid;
      await leases.create(leaseOf(objectOf(names, index), uid, life));
    }
  });
  return (count / (performance.now() - startedAtMs)) * 1000;
}

/** Runs the task for 0 to `count` - 1, so many at once. */
export async function forEachInFlight(
  count: number,
  inFlight: number,
  task: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (next < count) {
        const index = next;
        next += 1;
        await task(index);
      }
    }),
  );
}

interface NewInstance {
  readonly names: NameRange;
  readonly index: number;
  readonly life: Life;
  /** Undefined: it is the first of its name. */
  readonly serviceId: string | undefined;
}

function registrationOf({ names, index, life, serviceId }: NewInstance) {
  const serviceName = nameOf(names, index);
  const instanceId = instanceIdOf(names, index);
  return {
    apiVersion: 'rollcall.dev/v1alpha1' as const,
    kind: 'ServiceRegistration' as const,
    metadata: { name: objectOf(names, index), labels: { [labels.service]: serviceName } },
    spec: {
      serviceName,
      ...(instanceId === undefined ? {} : { instanceId }),
      ...(serviceId === undefined ? {} : { serviceId }),
      url: urlOf(serviceName),
      capabilities: ['rest' as const, 'grpc' as const],
      ttlSeconds: life.ttlSeconds,
      source: 'API' as const,
    },
  };
}

/** Where a service of a bench says that it is. */
export function urlOf(name: string): string {
  return `http://${name}.bench.svc.cluster.local:8080`;
}

function leaseOf(name: string, uid: string, { ttlSeconds, heartbeatAgeMs }: Life) {
  const { apiVersion, kind } = serviceRegistrationKind;
  const renewTime = microTime(new Date(Date.now() - heartbeatAgeMs));
  return {
    apiVersion: 'coordination.k8s.io/v1' as const,
    kind: 'Lease' as const,
    metadata: {
      name,
      labels: { [labels.heartbeat]: 'true' },
      annotations: { [annotations.heartbeatAgeMs]: String(heartbeatAgeMs) },
      ownerReferences: [{ apiVersion, kind, name, uid }],
    },
    spec: { holderIdentity: uid, leaseDurationSeconds: ttlSeconds, renewTime },
  };
}

/** Waits until the operator has observed all of these and the registry serves them. */
export async function settled(
  { registry, operator }: { readonly registry?: RollcallSubject; readonly operator?: RollcallSubject },
  ...ranges: readonly NameRange[]
): Promise<void> {
  const registrations = ranges.reduce((sum, { count }) => sum + count, 0);
  const services = ranges.reduce((sum, { count, perName = 1 }) => sum + Math.ceil(count / perName), 0);
  const failures = [registry, operator].flatMap((subject) => (subject === undefined ? [] : [subject.process.failed]));
  const isSettled = async (): Promise<boolean> => {
    if (operator !== undefined) {
      const registered = sumOf(await operator.metrics(), 'rollcall_registrations', { phase: 'Registered' });
      if (registered < registrations) return false;
    }
    return registry === undefined || sumOf(await registry.metrics(), 'rollcall_registry_services') >= services;
  };
  await waitUntil(`${registrations} registrations are known everywhere`, isSettled, {
    timeoutMs: SETTLE_TIMEOUT_MS,
    intervalMs: 500,
    failed: Promise.race(failures),
  });
}

/**
 * Waits until the operator has nothing left to write: it reports new registrations slowly, 50
 * Events a second.
 */
export async function quiet(operator: RollcallSubject): Promise<void> {
  const isQuiet = async () => sumOf(await operator.metrics(), 'rollcall_events_pending') === 0;
  await waitUntil('the operator has sent its Events', isQuiet, {
    timeoutMs: SETTLE_TIMEOUT_MS,
    intervalMs: 1000,
    failed: operator.process.failed,
  });
}

/** Deletes what a bench has made, so that the next one has the API server to itself. */
export async function clear(stage: Stage, namespace: string): Promise<void> {
  for (const kind of [leaseKind, serviceRegistrationKind]) {
    await stage.kube.request({ method: 'DELETE', path: collectionPath(kind, namespace) });
  }
}
