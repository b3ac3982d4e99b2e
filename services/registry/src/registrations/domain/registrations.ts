import type { Clock } from '@rollcall/platform/clock.ts';
import type { AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import type { ConcurrencyLimiter } from '@rollcall/platform/work/concurrency-limiter.ts';
import { RegistryError } from '../../common/errors.ts';
import { checkReport, checkServiceName, checkServiceUrl, isServiceName } from '../../common/validation.ts';
import type { Heartbeats } from './heartbeats.ts';
import {
  ChangedMeanwhileError,
  type HeartbeatWrite,
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
   * Registrations, removals and reports of one name are serial in this process; between replicas
   * the store decides.
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

/** Whether other programs may discover the registration. */
export function isDiscoverable(registration: Registration): boolean {
  return registration.phase === 'Registered';
}

/**
 * Registers a service, or renews a live registration of that name with a new URL and capabilities;
 * its id stays then.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_SERVICE_URL, MANAGED_ELSEWHERE,
 * NAME_OWNED_BY_ANOTHER, TOO_MANY_REGISTRATIONS, CONTENTION; the store's errors.
 */
export async function registerService(deps: RegistrationsDeps, request: RegistrationRequest): Promise<Registration> {
  checkServiceName(request.serviceName);
  checkServiceUrl(request.url, deps.mayConnect);
  return settle(deps, request.serviceName, (known) => registerOver(deps, known, request));
}

/**
 * Changes what a name stands for: decided by what is known here first, and anew by what the store
 * has each time that somebody else was faster.
 *
 * @throws RegistryError CONTENTION.
 */
function settle<T>(
  { store, oneByOne }: RegistrationsDeps,
  serviceName: string,
  change: (known: Registration | undefined) => Promise<T>,
): Promise<T> {
  return oneByOne.run(serviceName, async () => {
    let known = store.find(serviceName) ?? (await store.fetch(serviceName));
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      try {
        return await change(known);
      } catch (error) {
        if (!(error instanceof ChangedMeanwhileError)) throw error;
        known = await store.fetch(serviceName);
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
  return current;
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
  const heartbeat = { at: deps.clock.now(), ageMs: 0 };
  const created = await deps.store.create(request, deps.ttlSeconds);
  deps.heartbeats.sawDurable(keyOf(created, deps.ttlSeconds), heartbeat);
  return created;
}

/**
 * Finds a discoverable registration: in the local copy, and when the name is unknown there, in the
 * store itself.
 *
 * @throws RegistryError SERVICE_NOT_FOUND, and the store's errors when a name unknown here cannot
 * be looked up.
 */
export async function lookUpService(
  { store, misses }: Pick<RegistrationsDeps, 'store' | 'misses'>,
  serviceName: string,
): Promise<Registration> {
  const known = isServiceName(serviceName)
    ? (store.find(serviceName) ?? (await misses.run(serviceName, () => store.fetch(serviceName))))
    : undefined;
  if (known === undefined || !isDiscoverable(known)) throw notFound(serviceName);
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
  serviceName: string,
  subject: string | undefined,
): number | Promise<number> {
  const known = deps.store.find(serviceName);
  if (known === undefined) return lookUpService(deps, serviceName).then((found) => beat(deps, found, subject));
  return beat(deps, known, subject);
}

function beat(deps: RegistrationsDeps, known: Registration, subject: string | undefined): number | Promise<number> {
  if (!isDiscoverable(known)) throw notFound(known.serviceName);
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
  const current = await deps.store.fetch(known.serviceName);
  if (current === undefined || !isDiscoverable(current)) throw notFound(known.serviceName);
  if (current.id !== known.id) {
    if (await deps.heartbeats.beat(keyOf(current, deps.ttlSeconds))) return;
    throw notFound(known.serviceName);
  }
  if (known.source !== 'Manifest') throw notFound(known.serviceName);
  const heartbeat = { at: deps.clock.now(), ageMs: 0 };
  try {
    await restart(deps.store, current, { request: current, heartbeat });
  } catch (error) {
    if (error instanceof ChangedMeanwhileError) throw notFound(known.serviceName);
    throw error;
  }
  deps.heartbeats.sawDurable(keyOf(current, deps.ttlSeconds), heartbeat);
}

/**
 * Removes a registration.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, SERVICE_NOT_FOUND, MANAGED_ELSEWHERE,
 * NAME_OWNED_BY_ANOTHER, CONTENTION; the store's errors.
 */
export async function unregisterService(
  deps: RegistrationsDeps,
  serviceName: string,
  subject: string | undefined,
): Promise<void> {
  checkServiceName(serviceName);
  await settle(deps, serviceName, async (known) => {
    if (known === undefined || !isDiscoverable(known)) throw notFound(serviceName);
    checkChangeable(known, subject);
    if (known.source !== 'API') throw managedElsewhere(known);
    if (!(await deps.store.remove(known))) throw notFound(serviceName);
    deps.heartbeats.forget(known.id);
  });
}

/**
 * Keeps what a service said of itself.
 *
 * @throws RegistryError INVALID_REQUEST, SERVICE_NOT_FOUND, NAME_OWNED_BY_ANOTHER.
 */
export async function reportService(
  deps: RegistrationsDeps,
  input: { readonly serviceName: string; readonly subject: string | undefined; readonly report: ServiceReport },
): Promise<void> {
  checkServiceName(input.serviceName);
  checkReport(input.report);
  const known = await lookUpService(deps, input.serviceName);
  checkChangeable(known, input.subject);
  try {
    await deps.store.report(known, input.report);
  } catch (error) {
    if (error instanceof ChangedMeanwhileError) throw notFound(input.serviceName);
    throw error;
  }
}

function keyOf(registration: Registration, ttlSeconds: number) {
  const { serviceName, id } = registration;
  return { serviceName, id, ttlSeconds: registration.ttlSeconds ?? ttlSeconds };
}

function sameFacts(known: Registration, request: RegistrationRequest): boolean {
  return (
    known.url === request.url &&
    known.owner === request.owner &&
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

function notFound(serviceName: string): RegistryError {
  return new RegistryError('SERVICE_NOT_FOUND', `Service '${serviceName}' is not in the registry`);
}
