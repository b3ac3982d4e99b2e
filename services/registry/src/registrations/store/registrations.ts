import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import { annotations, isLabelValue, labels, objectNameFor, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { HealthCheckStatus, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { checkStatusOf } from '@rollcall/platform/health-words.ts';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound } from '@rollcall/platform/kube/errors.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { fieldSelector, listObjects } from '@rollcall/platform/kube/list.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import { preconditionsOf, type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import { RegistryError } from '../../common/errors.ts';
import { storedAgeMs } from '../domain/heartbeats.ts';
import { createInstances, type Instances } from '../domain/instances.ts';
import {
  ChangedMeanwhileError,
  type Composition,
  type Facts,
  type HeartbeatWrite,
  type InstanceKey,
  type NewRegistration,
  type Registration,
  type RegistrationLife,
  type RegistrationRequest,
  type RegistrationStore,
  type ServiceReport,
} from '../domain/registration.ts';
import { composedCondition } from './composed-condition.ts';
import { registrationRefusal } from './registration-refusal.ts';

const LEASE_TRIES = 4;
const REPORT_TRIES = 8;

export interface RegistrationStoreDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  readonly clock: Clock;
  readonly registrations: Informer<ServiceRegistration>;
  readonly leases: Informer<Lease>;
  /**
   * What the watch has brought of a service, once it has brought everything up to this version.
   *
   * @throws RegistryError STORE_UNAVAILABLE when that takes too long.
   */
  readonly streamed: (serviceName: string, version: number) => Promise<readonly Registration[]>;
  /**
   * A registration as it is now known here, or that it is gone: from the watch or from our own
   * write.
   */
  readonly onChange: (registration: Registration, deleted: boolean) => void;
}

interface Context extends Omit<RegistrationStoreDeps, 'streamed' | 'onChange'> {
  readonly objects: ResourceClient<ServiceRegistration>;
  readonly leaseObjects: ResourceClient<Lease>;
}

/** Registrations as custom resources, their heartbeats as Leases (docs/internals.md). */
export function createRegistrationStore(deps: RegistrationStoreDeps): RegistrationStore {
  const { connection, namespace, clock, registrations, leases, onChange } = deps;
  const context: Context = {
    connection,
    namespace,
    clock,
    registrations,
    leases,
    objects: resourceClient(connection, serviceRegistrationKind, namespace),
    leaseObjects: resourceClient(connection, leaseKind, namespace),
  };
  const known = createInstances();
  const fetching = new Map<string, Promise<Registration | undefined>>();

  registrations.onChange((change) => {
    if (change.type === 'resync' || !isCanonical(change.object)) return;
    const registration = toRegistration(change.object);
    const deleted = change.type === 'deleted';
    if (deleted) known.remove(registration);
    else known.put(registration);
    onChange(registration, deleted);
  });

  return {
    find: ({ serviceName, instanceId }) => known.find(serviceName, instanceId),
    instancesOf: (serviceName) => known.of(serviceName),
    countOf(owner) {
      let count = 0;
      for (const registration of known.values()) if (registration.owner === owner) count += 1;
      return count;
    },
    fetch(key) {
      const name = objectNameOf(key);
      const pending = fetching.get(name);
      if (pending !== undefined) return pending;
      const fetched = fetchRegistration(context, key).finally(() => fetching.delete(name));
      fetching.set(name, fetched);
      return fetched;
    },
    fetchInstances: (serviceName) => fetchInstances(context, serviceName, known),
    create: (registration) => createRegistration(context, registration),
    instancesSince: ({ serviceName, version }) => deps.streamed(serviceName, version),
    adopt: (registration, serviceId) => adoptServiceId(context, registration, serviceId),
    update: (registration, request) => updateRegistration(context, registration, request),
    renew: (life, heartbeat) => renewLease(context, life, heartbeat),
    startHeartbeats: (registration, heartbeat) => createLease(context, registration, heartbeat),
    remove: (registration) => removeRegistration(context, registration),
    report: (registration, report) => writeReport(context, registration, report),
    reportComposition: (registration, composition) => writeComposition(context, registration, composition),
  };
}

/**
 * Objects under another name than that of their instance would be second registrations of it: they
 * are not served.
 */
export function isCanonical({ metadata, spec }: ServiceRegistration): boolean {
  return metadata.name === objectNameOf(spec);
}

function objectNameOf({ serviceName, instanceId }: Partial<InstanceKey> & { readonly serviceName: string }): string {
  return objectNameFor(serviceName, instanceId);
}

/** Several keep the view of each object: they share it. */
const views = new WeakMap<ServiceRegistration, Registration>();

/** The domain's view of a ServiceRegistration that the API server stored. */
export function toRegistration(object: ServiceRegistration): Registration {
  const view = views.get(object) ?? viewOf(object);
  views.set(object, view);
  return view;
}

function viewOf(object: ServiceRegistration): Registration {
  const { metadata, spec, status } = object;
  const { uid = '', creationTimestamp = 0 } = metadata;
  return {
    serviceName: spec.serviceName,
    instanceId: spec.instanceId,
    url: spec.url,
    id: uid,
    serviceId: spec.serviceId ?? uid,
    capabilities: spec.capabilities,
    metadata: spec.metadata,
    zone: spec.zone,
    weight: spec.weight,
    graphqlPath: spec.graphqlPath,
    check: spec.check,
    source: spec.source,
    ttlSeconds: spec.ttlSeconds,
    createdAt: new Date(creationTimestamp),
    registeredAt: new Date(status?.registeredAt ?? creationTimestamp),
    phase: status?.phase ?? 'Registered',
    currentVersion: status?.currentVersion,
    health: status?.health?.status,
    checkResult: checkResultOf(checkStatusOf(object)),
    owner: metadata.annotations?.[annotations.owner],
    version: versionOf(object),
  };
}

function checkResultOf(check: HealthCheckStatus | undefined): Registration['checkResult'] {
  return check === undefined ? undefined : { ...check, since: new Date(check.since) };
}

async function fetchRegistration(context: Context, key: InstanceKey): Promise<Registration | undefined> {
  const object = await context.objects.find(objectNameOf(key));
  if (object === undefined || object.spec.serviceName !== key.serviceName) return undefined;
  context.registrations.recordWrite(object);
  return toRegistration(object);
}

async function fetchInstances(
  context: Context,
  serviceName: string,
  known: Instances,
): Promise<readonly Registration[]> {
  const { connection, namespace } = context;
  const query = { fieldSelector: fieldSelector('spec.serviceName', serviceName) };
  const objects = await listObjects(connection, serviceRegistrationKind, { namespace, query });
  for (const object of objects) context.registrations.recordWrite(object);
  return known.of(serviceName);
}

async function createRegistration(context: Context, registered: NewRegistration): Promise<Registration> {
  const { serviceName, instanceId, serviceId, owner, ttlSeconds } = registered;
  const object = await changing(() =>
    context.objects.create({
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'ServiceRegistration',
      metadata: {
        name: objectNameOf(registered),
        ...(isLabelValue(serviceName) ? { labels: { [labels.service]: serviceName } } : {}),
        ...(owner === undefined ? {} : { annotations: { [annotations.owner]: owner } }),
      },
      spec: {
        serviceName,
        ...(instanceId === undefined ? {} : { instanceId }),
        ...(serviceId === undefined ? {} : { serviceId }),
        ...specOf(registered),
        ttlSeconds,
        source: 'API',
      },
    }),
  );
  const registration = toRegistration(object);
  try {
    await createLease(context, registration, { at: context.clock.now(), ageMs: 0 });
  } catch (error) {
    if (error instanceof RegistryError) await context.objects.delete(object.metadata.name, { uid: registration.id });
    throw error;
  }
  context.registrations.recordWrite(object);
  return registration;
}

function specOf({ url, capabilities, metadata, zone, weight, graphqlPath, check }: Facts) {
  return {
    url,
    capabilities: [...capabilities],
    ...(metadata === undefined ? {} : { metadata }),
    ...(zone === undefined ? {} : { zone }),
    ...(weight === undefined ? {} : { weight }),
    ...(graphqlPath === undefined ? {} : { graphqlPath }),
    ...(check === undefined ? {} : { check }),
  };
}

/** A merge patch keeps what it does not name. */
function replacedSpec(known: Facts, request: Facts): object {
  const { url, capabilities, metadata, zone, weight, graphqlPath, check } = request;
  return {
    url,
    capabilities,
    metadata: metadata === undefined ? null : { ...emptied(known.metadata), ...metadata },
    zone: zone ?? null,
    weight: weight ?? null,
    graphqlPath: graphqlPath ?? null,
    check: check === undefined ? null : { ...check, path: check.path ?? null, service: check.service ?? null },
  };
}

function emptied(metadata: Facts['metadata'] = {}): Record<string, null> {
  return Object.fromEntries(Object.keys(metadata).map((key) => [key, null]));
}

async function adoptServiceId(context: Context, registration: Registration, serviceId: string): Promise<Registration> {
  const patch = { spec: { serviceId } };
  const object = await changing(() =>
    context.objects.patch(objectNameOf(registration), patch, { uid: registration.id }),
  );
  context.registrations.recordWrite(object);
  return toRegistration(object);
}

async function updateRegistration(
  context: Context,
  registration: Registration,
  request: RegistrationRequest,
): Promise<Registration> {
  const patch = {
    metadata: {
      annotations: {
        [annotations.updatedAt]: context.clock.now().toISOString(),
        ...(request.owner === undefined ? {} : { [annotations.owner]: request.owner }),
      },
    },
    spec: replacedSpec(registration, request),
  };
  const object = await changing(() =>
    context.objects.patch(objectNameOf(registration), patch, {
      uid: registration.id,
      // Of two subjects that claim a name without an owner at once, one gets it.
      ...(request.owner === registration.owner ? {} : { resourceVersion: String(registration.version) }),
    }),
  );
  context.registrations.recordWrite(object);
  return toRegistration(object);
}

/**
 * The Lease is written as it was seen, by its uid: it is of this life of the registration, and
 * another one that has its name, a stranger's leader election perhaps, stays; and by its version: a
 * heartbeat that is written late, after its absorb window, must not replace a newer one of another
 * replica that the watch has not delivered yet.
 *
 * @throws RegistryError CONTENTION when others were faster each time.
 */
async function renewLease(context: Context, life: RegistrationLife, heartbeat: HeartbeatWrite): Promise<boolean> {
  const { clock, leases, leaseObjects, namespace } = context;
  const name = objectNameOf(life);
  const beatMs = clock.monotonicMs() - heartbeat.ageMs;
  let lease = leases.store.get(`${namespace}/${name}`);
  if (!isLeaseOf(life, lease)) lease = await leaseObjects.find(name);
  for (let tries = 1; tries <= LEASE_TRIES; tries += 1) {
    if (!isLeaseOf(life, lease)) return false;
    const patch = {
      metadata: { annotations: { [annotations.heartbeatAgeMs]: String(heartbeat.ageMs) } },
      spec: { renewTime: microTime(heartbeat.at) },
    };
    try {
      leases.recordWrite(await leaseObjects.patch(name, patch, preconditionsOf(lease.metadata)));
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      if (!isConflict(error)) throw error;
    }
    lease = await leaseObjects.find(name);
    if (!isLeaseOf(life, lease)) return false;
    leases.recordWrite(lease);
    const { ageMs, renewTime = 0 } = heartbeatOf(lease);
    if (clock.monotonicMs() - storedAgeMs({ at: new Date(renewTime), ageMs }, clock) >= beatMs) return true;
  }
  throw new RegistryError('CONTENTION', `The heartbeats of '${life.serviceName}' are being written by others`);
}

function isLeaseOf(life: RegistrationLife, lease: Lease | undefined): lease is Lease {
  return lease?.metadata.labels?.[labels.heartbeat] === 'true' && heartbeatOf(lease).ownerUid === life.id;
}

/**
 * A Lease of that name which belongs to an earlier life of the registration is a leftover and is
 * replaced.
 *
 * @throws ChangedMeanwhileError when this life is over: the Lease may be that of the next one.
 * @throws RegistryError INVALID_SERVICE_NAME when the Lease is no heartbeat: somebody elects a
 * leader by it, perhaps.
 */
async function createLease(context: Context, registration: Registration, heartbeat: HeartbeatWrite): Promise<void> {
  const name = objectNameOf(registration);
  for (let tries = 1; ; tries += 1) {
    try {
      context.leases.recordWrite(await context.leaseObjects.create(leaseFor(name, registration, heartbeat)));
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      if (tries === LEASE_TRIES) throw new ChangedMeanwhileError({ cause: error });
    }
    const present = await context.leaseObjects.find(name);
    if (present === undefined) continue;
    if (isLeaseOf(registration, present)) {
      if (await renewLease(context, registration, heartbeat)) return;
    } else {
      await removeLeftover(context, present, registration);
    }
  }
}

async function removeLeftover(context: Context, lease: Lease, registration: Registration): Promise<void> {
  const { name } = lease.metadata;
  if (lease.metadata.labels?.[labels.heartbeat] !== 'true') {
    throw new RegistryError('INVALID_SERVICE_NAME', `A Lease '${name}' that is no heartbeat takes the name`);
  }
  if ((await context.objects.find(name))?.metadata.uid !== registration.id) throw new ChangedMeanwhileError();
  await deleteLease(context, lease);
}

async function deleteLease(context: Context, lease: Lease): Promise<void> {
  const { name, uid } = lease.metadata;
  try {
    await context.leaseObjects.delete(name, uid === undefined ? {} : { uid });
    context.leases.recordDelete(lease);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

function leaseFor(name: string, registration: Registration, heartbeat: HeartbeatWrite) {
  return {
    apiVersion: 'coordination.k8s.io/v1' as const,
    kind: 'Lease' as const,
    metadata: {
      name,
      labels: { [labels.heartbeat]: 'true' },
      annotations: { [annotations.heartbeatAgeMs]: String(heartbeat.ageMs) },
      ownerReferences: [
        {
          apiVersion: serviceRegistrationKind.apiVersion,
          kind: serviceRegistrationKind.kind,
          name,
          uid: registration.id,
        },
      ],
    },
    spec: {
      holderIdentity: registration.id,
      ...(registration.ttlSeconds === undefined ? {} : { leaseDurationSeconds: registration.ttlSeconds }),
      renewTime: microTime(heartbeat.at),
    },
  };
}

/**
 * The Lease goes with its owner; it is deleted here only so that nobody has to wait for the garbage
 * collector.
 */
async function removeRegistration(context: Context, registration: Registration): Promise<boolean> {
  const name = objectNameOf(registration);
  const object = context.registrations.store.get(`${context.namespace}/${name}`);
  const removed = await changing(() => context.objects.delete(name, { uid: registration.id }));
  if (object?.metadata.uid === registration.id) context.registrations.recordDelete(object);
  const lease = context.leases.store.get(`${context.namespace}/${name}`);
  if (removed && lease !== undefined && heartbeatOf(lease).ownerUid === registration.id) {
    await deleteLease(context, lease).catch(() => undefined);
  }
  return removed;
}

/**
 * What a service says of itself may come late, and by several replicas: a report never replaces one
 * that was made after it.
 *
 * @throws RegistryError CONTENTION when others were faster each time.
 */
async function writeReport(context: Context, registration: Registration, report: ServiceReport): Promise<void> {
  const name = objectNameOf(registration);
  let known = context.registrations.store.get(`${context.namespace}/${name}`);
  for (let tries = 0; tries < REPORT_TRIES; tries += 1) {
    if (known?.metadata.uid !== registration.id) known = await context.objects.find(name);
    if (known?.metadata.uid !== registration.id) throw new ChangedMeanwhileError();
    if (reportedAtMs(known, report.kind) > report.at.getTime()) return;
    const written = await applyReport(context, known, report);
    if (written !== undefined) return recordVersion(context, written, report);
    known = undefined;
  }
  throw new RegistryError('CONTENTION', `The reports of '${registration.serviceName}' are being written by others`);
}

function reportedAtMs({ status }: ServiceRegistration, kind: ServiceReport['kind']): number {
  const at = kind === 'health' ? status?.health?.reportedAt : status?.lifecycle?.at;
  return at === undefined ? Number.NEGATIVE_INFINITY : Date.parse(at);
}

/** @returns undefined when the object was changed meanwhile. */
async function applyReport(
  context: Context,
  { metadata }: ServiceRegistration,
  { kind, word, at, details }: ServiceReport,
): Promise<ServiceRegistration | undefined> {
  const status =
    kind === 'health'
      ? { health: { status: word, reportedAt: at.toISOString(), details } }
      : { lifecycle: { event: word, at: at.toISOString(), details } };
  const manifest = { metadata: { name: metadata.name, ...preconditionsOf(metadata) }, status };
  const options = { fieldManager: `rollcall-registry-${kind}`, force: true, subresource: 'status' } as const;
  try {
    const object = await changing(() => context.objects.apply(manifest, options));
    context.registrations.recordWrite(object);
    return object;
  } catch (error) {
    if (error instanceof ChangedMeanwhileError) return undefined;
    throw error;
  }
}

async function recordVersion(
  context: Context,
  { metadata, status }: ServiceRegistration,
  { details }: ServiceReport,
): Promise<void> {
  const { version } = details;
  const { name, uid } = metadata;
  if (typeof version !== 'string' || version === status?.currentVersion || uid === undefined) return;
  const patch = { status: { currentVersion: version } };
  const versioned = await changing(() => context.objects.patch(name, patch, { uid, subresource: 'status' }));
  context.registrations.recordWrite(versioned);
}

async function writeComposition(
  { registrations, objects, namespace, clock }: Context,
  registration: Registration,
  composition: Composition,
): Promise<void> {
  const name = objectNameOf(registration);
  const known = registrations.store.get(`${namespace}/${name}`);
  if (known?.metadata.uid !== registration.id) throw new ChangedMeanwhileError();
  const condition = composedCondition(known, composition, clock.now());
  if (condition === undefined) return;
  const manifest = { metadata: { name, uid: registration.id }, status: { conditions: [condition] } };
  const options = { fieldManager: 'rollcall-registry-composition', force: true, subresource: 'status' } as const;
  registrations.recordWrite(await changing(() => objects.apply(manifest, options)));
}

/** Distinguishes "somebody was faster" and "the API server finds it invalid" from failures. */
async function changing<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (isNotFound(error) || isConflict(error) || isAlreadyExists(error))
      throw new ChangedMeanwhileError({ cause: error });
    if (isInvalid(error)) throw registrationRefusal(error);
    throw error;
  }
}
