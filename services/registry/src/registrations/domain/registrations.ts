import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import type { ConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { RegistryError } from '../../common/errors.ts';
import {
  checkFacts,
  checkInstanceId,
  checkReport,
  checkServiceName,
  checkServiceUrl,
  isInstanceId,
  isServiceName,
} from '../../common/validation.ts';
import type { Heartbeats } from './heartbeats.ts';
import { byCreation, byRegistration, isDiscoverable, representativeOf } from './instances.ts';
import {
  ChangedMeanwhileError,
  type HeartbeatWrite,
  type InstanceKey,
  type Registration,
  type RegistrationRequest,
  type RegistrationStore,
  type ServiceReport,
} from './registration.ts';

/** Another writer won every one of this many races: the caller should come back later. */
const MAX_TRIES = 8;

export interface RegistrationsDeps {
  readonly store: RegistrationStore;
  readonly heartbeats: Heartbeats;
  /**
   * Registrations and removals of one instance are serial in this process; between replicas the
   * store decides.
   */
  readonly oneByOne: Pick<ConcurrencyLimiter, 'run'>;
  /**
   * Lookups of names that are unknown here, in the store: anyone can cause them, and heartbeats
   * must not wait for them.
   */
  readonly misses: Pick<ConcurrencyLimiter, 'run'>;
  readonly clock: Clock;
  /** How many registrations a subject may have; a few more where several are made at once. */
  readonly registrationsPerSubject: number;
  /** Where services may be registered. */
  readonly mayConnect: AddressRule;
  /** TTL of every registration made over HTTP, in seconds. */
  readonly ttlSeconds: number;
}

/**
 * Registers an instance of a service, or renews a live registration of it with a new URL and
 * capabilities; its id stays then.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_INSTANCE_ID, INVALID_SERVICE_URL,
 * INVALID_REQUEST, MANAGED_ELSEWHERE, NAME_OWNED_BY_ANOTHER, TOO_MANY_REGISTRATIONS, CONTENTION;
 * the store's errors.
 */
export async function registerService(deps: RegistrationsDeps, request: RegistrationRequest): Promise<Registration> {
  checkKey(request);
  checkServiceUrl(request.url, deps.mayConnect);
  checkFacts(request);
  return settle(deps, request, (known) => registerOver(deps, known, request));
}

/** @throws RegistryError INVALID_SERVICE_NAME, INVALID_INSTANCE_ID. */
function checkKey({ serviceName, instanceId }: InstanceKey): void {
  checkServiceName(serviceName);
  checkInstanceId(instanceId);
}

/**
 * Changes what is registered: decided by what is known here first, and anew by what the store has
 * each time that somebody else was faster.
 *
 * @throws RegistryError CONTENTION.
 */
function settle<T>(
  { store, oneByOne }: RegistrationsDeps,
  key: InstanceKey,
  change: (known: Registration | undefined) => Promise<T>,
): Promise<T> {
  const { serviceName, instanceId = '' } = key;
  return oneByOne.run(`${serviceName}:${instanceId}`, async () => {
    let known = store.find(key) ?? (await store.fetch(key));
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      try {
        return await change(known);
      } catch (error) {
        if (!(error instanceof ChangedMeanwhileError)) throw error;
        known = await store.fetch(key);
      }
    }
    throw new RegistryError('CONTENTION', `The name '${serviceName}' is being changed by others`);
  });
}

async function registerOver(
  deps: RegistrationsDeps,
  known: Registration | undefined,
  request: RegistrationRequest,
): Promise<Registration> {
  const { store, heartbeats } = deps;
  for (const instance of store.instancesOf(request.serviceName)) checkMayJoin(instance, request);
  if (known === undefined) {
    checkShare(deps, request.owner);
    return create(deps, request);
  }
  checkChangeable(known, request.owner);
  if (known.source !== 'API') throw managedElsewhere(known);
  if (known.owner !== request.owner) checkShare(deps, request.owner);
  if (known.phase === 'Expired') {
    await store.remove(known);
    heartbeats.forget(known.id);
    return create(deps, request);
  }
  const heartbeat = { at: deps.clock.now(), ageMs: 0 };
  let current = sameFacts(known, request) ? known : await store.update(known, request);
  if (!(await store.renew(current, heartbeat))) {
    current = await restart(store, current, { request, heartbeat });
  }
  heartbeats.sawDurable(keyOf(current, deps.ttlSeconds), heartbeat);
  // What was to be done when it was made may have failed then. Nobody can tell any more which of the
  // same second was the first: all replicas take the same one.
  const earlier = store.instancesOf(request.serviceName).filter((each) => byCreation(each, current) < 0);
  return adoptServiceId(deps, current, earlier.toSorted(byCreation));
}

/**
 * Begins the heartbeats of a registration that has no record of them. The update comes after: an
 * expiry that was decided before then fails on the registration's version, and one that is decided
 * later finds the record.
 *
 * @throws ChangedMeanwhileError when it was expired first.
 */
async function restart(
  store: RegistrationStore,
  known: Registration,
  { request, heartbeat }: { readonly request: RegistrationRequest; readonly heartbeat: HeartbeatWrite },
): Promise<Registration> {
  await store.startHeartbeats(known, heartbeat);
  const current = await store.update(known, request);
  if (current.phase === 'Expired') throw new ChangedMeanwhileError();
  return current;
}

async function create(deps: RegistrationsDeps, request: RegistrationRequest): Promise<Registration> {
  const { store, ttlSeconds } = deps;
  const heartbeat = { at: deps.clock.now(), ageMs: 0 };
  const { serviceId } = representativeOf(store.instancesOf(request.serviceName)) ?? {};
  const created = await store.create({ ...request, serviceId, ttlSeconds });
  deps.heartbeats.sawDurable(keyOf(created, ttlSeconds), heartbeat);
  return joinOthers(deps, created, request);
}

/**
 * Other replicas may have made instances of the service just before this one: it takes the id of the
 * service from the first, or goes where it may not be.
 */
async function joinOthers(
  deps: RegistrationsDeps,
  created: Registration,
  request: RegistrationRequest,
): Promise<Registration> {
  const { store, heartbeats } = deps;
  try {
    const instances = await store.instancesSince(created);
    const at = instances.findIndex(({ id }) => id === created.id);
    const earlier = at === -1 ? instances : instances.slice(0, at);
    for (const instance of earlier) checkMayJoin(instance, request);
    return await adoptServiceId(deps, created, earlier);
  } catch (error) {
    // Somebody else has removed it, and it begins anew.
    if (error instanceof ChangedMeanwhileError) throw error;
    await store.remove(created);
    heartbeats.forget(created.id);
    throw error;
  }
}

/**
 * Gives an instance the id that the first of the earlier ones has, where it has another. Their order
 * decides, not their times: an object may be stored before one that got its time a moment earlier.
 */
async function adoptServiceId(
  { store }: Pick<RegistrationsDeps, 'store'>,
  current: Registration,
  earlier: readonly Registration[],
): Promise<Registration> {
  const first = earlier.find((each) => isDiscoverable(each) && each.id !== current.id);
  return first === undefined || first.serviceId === current.serviceId ? current : store.adopt(current, first.serviceId);
}

/**
 * @throws RegistryError NAME_OWNED_BY_ANOTHER, MANAGED_ELSEWHERE where another instance keeps one
 * from being registered beside it.
 */
function checkMayJoin(instance: Registration, { owner }: RegistrationRequest): void {
  checkChangeable(instance, owner);
  if (instance.source !== 'API' && isDiscoverable(instance)) throw managedElsewhere(instance);
}

/**
 * Finds what stands for a name: in the local copy, and when the name is unknown there, in the
 * store itself.
 *
 * @throws RegistryError SERVICE_NOT_FOUND, and the store's errors when a name unknown here cannot
 * be looked up.
 */
export async function lookUpService(
  { store, misses }: Pick<RegistrationsDeps, 'store' | 'misses'>,
  serviceName: string,
): Promise<Registration> {
  if (!isServiceName(serviceName)) throw notFound({ serviceName, instanceId: undefined });
  const known = store.instancesOf(serviceName);
  const instances = known.some(isDiscoverable)
    ? known
    : await misses.run(serviceName, () => store.fetchInstances(serviceName));
  const representative = representativeOf(instances);
  if (representative === undefined) throw notFound({ serviceName, instanceId: undefined });
  return representative;
}

/** The discoverable instances of a service, as they are known here, in the order of their registration. */
export function livingInstances(store: Pick<RegistrationStore, 'instancesOf'>, serviceName: string): Registration[] {
  return store.instancesOf(serviceName).filter(isDiscoverable).toSorted(byRegistration);
}

/**
 * As {@link lookUpService}, for one instance.
 *
 * @throws RegistryError SERVICE_NOT_FOUND, and the store's errors when an instance unknown here
 * cannot be looked up.
 */
export async function lookUpInstance(
  { store, misses }: Pick<RegistrationsDeps, 'store' | 'misses'>,
  key: InstanceKey,
): Promise<Registration> {
  const { serviceName, instanceId } = key;
  const known =
    isServiceName(serviceName) && isInstanceId(instanceId)
      ? (store.find(key) ?? (await misses.run(`${serviceName}:${instanceId ?? ''}`, () => store.fetch(key))))
      : undefined;
  if (known === undefined || !isDiscoverable(known)) throw absent({ store }, key);
  return known;
}

/**
 * Accepts a heartbeat.
 *
 * @returns the TTL that starts anew, in seconds.
 * @throws RegistryError SERVICE_NOT_FOUND when the service is not registered or has expired,
 * NAME_OWNED_BY_ANOTHER.
 */
export function recordHeartbeat(
  deps: RegistrationsDeps,
  key: InstanceKey,
  subject: string | undefined,
): number | Promise<number> {
  const known = deps.store.find(key);
  if (known === undefined) return lookUpInstance(deps, key).then((found) => beat(deps, found, subject));
  return beat(deps, known, subject);
}

function beat(deps: RegistrationsDeps, known: Registration, subject: string | undefined): number | Promise<number> {
  if (!isDiscoverable(known)) throw notFound(known);
  checkChangeable(known, subject);
  const ttlSeconds = known.ttlSeconds ?? deps.ttlSeconds;
  if (known.ttlSeconds === undefined) return ttlSeconds;
  const renewal = deps.heartbeats.beat(keyOf(known, ttlSeconds));
  if (renewal === true) return ttlSeconds;
  return renewal.then(async (renewed) => {
    if (!renewed) await reviveOrRefuse(deps, known);
    return ttlSeconds;
  });
}

/**
 * A manifest with a TTL has no heartbeat record until its first heartbeat; for any other a missing
 * record is the end, unless another life has begun on another replica.
 */
async function reviveOrRefuse(deps: RegistrationsDeps, known: Registration): Promise<void> {
  const current = await deps.store.fetch(known);
  if (current === undefined || !isDiscoverable(current)) throw notFound(known);
  if (current.id !== known.id) {
    if (await deps.heartbeats.beat(keyOf(current, deps.ttlSeconds))) return;
    throw notFound(known);
  }
  if (known.source !== 'Manifest') throw notFound(known);
  const heartbeat = { at: deps.clock.now(), ageMs: 0 };
  try {
    await restart(deps.store, current, { request: current, heartbeat });
  } catch (error) {
    if (error instanceof ChangedMeanwhileError) throw notFound(known);
    throw error;
  }
  deps.heartbeats.sawDurable(keyOf(current, deps.ttlSeconds), heartbeat);
}

/**
 * Removes the registration of one instance; others of the service stay.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_INSTANCE_ID, SERVICE_NOT_FOUND, MANAGED_ELSEWHERE,
 * NAME_OWNED_BY_ANOTHER, CONTENTION; the store's errors.
 */
export async function unregisterService(
  deps: RegistrationsDeps,
  key: InstanceKey,
  subject: string | undefined,
): Promise<void> {
  checkKey(key);
  await settle(deps, key, async (known) => {
    if (known === undefined || !isDiscoverable(known)) throw absent(deps, key);
    checkChangeable(known, subject);
    if (known.source !== 'API') throw managedElsewhere(known);
    if (!(await deps.store.remove(known))) throw notFound(key);
    deps.heartbeats.forget(known.id);
  });
}

/**
 * Keeps what an instance said of itself.
 *
 * @throws RegistryError INVALID_REQUEST, INVALID_INSTANCE_ID, SERVICE_NOT_FOUND,
 * NAME_OWNED_BY_ANOTHER.
 */
export async function reportService(
  deps: RegistrationsDeps,
  input: InstanceKey & { readonly subject: string | undefined; readonly report: ServiceReport },
): Promise<void> {
  checkKey(input);
  checkReport(input.report);
  const known = await lookUpReporter(deps, input);
  checkChangeable(known, input.subject);
  try {
    await deps.store.report(known, notLaterThan(deps.clock.now(), input.report));
  } catch (error) {
    if (error instanceof ChangedMeanwhileError) throw notFound(input);
    throw error;
  }
}

/** A clock that is ahead would keep all later reports out. */
function notLaterThan(now: Date, report: ServiceReport): ServiceReport {
  return report.at > now ? { ...report, at: now } : report;
}

/**
 * A report without an id is of the instance that has none, or of the only one there is: who reports
 * may know nothing of who registered it, such as another container of the pod.
 */
async function lookUpReporter(deps: RegistrationsDeps, key: InstanceKey): Promise<Registration> {
  const { store, misses } = deps;
  const { serviceName, instanceId } = key;
  if (instanceId !== undefined) return lookUpInstance(deps, key);
  const unnamed = store.find(key) ?? (await misses.run(`${serviceName}:`, () => store.fetch(key)));
  if (unnamed !== undefined && isDiscoverable(unnamed)) return unnamed;
  await lookUpService(deps, serviceName);
  const [only, ...others] = livingInstances(store, serviceName);
  if (only !== undefined && others.length === 0) return only;
  throw new RegistryError('SERVICE_NOT_FOUND', `'${serviceName}' has several instances: name one by instance_id`);
}

function keyOf(registration: Registration, ttlSeconds: number) {
  const { serviceName, instanceId, id } = registration;
  return { serviceName, instanceId, id, ttlSeconds: registration.ttlSeconds ?? ttlSeconds };
}

function sameFacts(known: Registration, request: RegistrationRequest): boolean {
  return (
    known.url === request.url &&
    known.owner === request.owner &&
    known.zone === request.zone &&
    known.weight === request.weight &&
    known.graphqlPath === request.graphqlPath &&
    isDeepStrictEqual(known.metadata ?? {}, request.metadata ?? {}) &&
    isDeepStrictEqual(known.check, request.check) &&
    known.capabilities.length === request.capabilities.length &&
    known.capabilities.every((capability) => request.capabilities.includes(capability))
  );
}

/** @throws RegistryError TOO_MANY_REGISTRATIONS where the subject may not have one more. */
function checkShare({ store, registrationsPerSubject }: RegistrationsDeps, owner: string | undefined): void {
  if (owner === undefined || store.countOf(owner) < registrationsPerSubject) return;
  const message = `You have ${registrationsPerSubject} registrations, as many as one subject may have; unregister some`;
  throw new RegistryError('TOO_MANY_REGISTRATIONS', message);
}

/** A name belongs to the subject that registered it, where subjects are known. */
function checkChangeable(known: Registration, subject: string | undefined): void {
  if (subject === undefined || known.owner === undefined || known.owner === subject) return;
  throw new RegistryError('NAME_OWNED_BY_ANOTHER', `The name '${known.serviceName}' belongs to another subject`);
}

function managedElsewhere(known: Registration): RegistryError {
  const origin = known.source === 'Manifest' ? 'a manifest' : 'an annotated Kubernetes Service';
  return new RegistryError('MANAGED_ELSEWHERE', `'${known.serviceName}' is declared by ${origin}; change it there`);
}

function notFound({ serviceName, instanceId }: InstanceKey): RegistryError {
  const what = instanceId === undefined ? 'Service' : `Instance '${instanceId}' of service`;
  return new RegistryError('SERVICE_NOT_FOUND', `${what} '${serviceName}' is not in the registry`);
}

/** As {@link notFound}, where one instance was meant, and others may be there. */
function absent({ store }: Pick<RegistrationsDeps, 'store'>, key: InstanceKey): RegistryError {
  const isAmbiguous = key.instanceId === undefined && store.instancesOf(key.serviceName).some(isDiscoverable);
  if (!isAmbiguous) return notFound(key);
  const message = `All instances of '${key.serviceName}' have ids: name one by instance_id`;
  return new RegistryError('SERVICE_NOT_FOUND', message);
}
