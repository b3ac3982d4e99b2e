import { type BackOff, backOffMs } from './back-off.ts';
import { createEmitter, type Subscribable } from './emitter.ts';
import { nextHeartbeatInMs, RECOMMENDED_INTERVAL_MS, scheduleFor } from './heartbeat-schedule.ts';
import { defaultInstanceId } from './instance-id.ts';
import { ownZone } from './own-zone.ts';
import { pause } from './pause.ts';
import { createRegistryClient, type RegistryClient } from './registry-client.ts';
import { isServiceNotFound, RegistryError } from './registry-error.ts';
import type { Capability, HealthCheck, InstanceFacts, RegisteredService, RegisterRequest } from './registry-types.ts';
import type { ConnectionOptions } from './transport.ts';

export interface RegisterOptions extends ConnectionOptions {
  readonly name: string;
  /** Where the service can be reached. */
  readonly url: string;
  readonly capabilities?: readonly Capability[] | undefined;
  /** Between heartbeats, before jitter of 10 %. Default 30,000; at most half of the TTL is used. */
  readonly heartbeatIntervalMs?: number | undefined;
  /** Between attempts after a failure. Default 250 ms, doubling up to 5 s, with jitter. */
  readonly retry?: BackOff | undefined;
  /**
   * Which of the programs of this name it is: a DNS label. Default: the pod's name, elsewhere the
   * host's and a random part. Of two programs with the same one, the later replaces the other.
   */
  readonly instanceId?: string | undefined;
  /** What others may choose by. The zone is that of `ROLLCALL_ZONE` by default. */
  readonly facts?: InstanceFacts | undefined;
  /** How Rollcall asks it whether it is well; while that fails others get the requests. */
  readonly check?: HealthCheck | undefined;
  /** Let a Node process end although this registration is alive; it then expires by itself. */
  readonly unref?: boolean | undefined;
}

/** @public */
export interface RegistrationEvents {
  /** The registry accepted the service; `again` after it had been lost. */
  registered: { readonly service: RegisteredService; readonly again: boolean };
  heartbeat: { readonly ttl: number };
  /**
   * Others may not find the service now. `expired`: the registry no longer knows it, it is being
   * registered again. `unreachable`: no heartbeat was acknowledged for a whole TTL; they go on.
   */
  lost: { readonly reason: 'expired' | 'unreachable' };
  /**
   * A request failed. `retryInMs` is undefined where the registry refused the registration for
   * good.
   */
  error: { readonly error: unknown; readonly retryInMs: number | undefined };
}

/**
 * `refused`: the registry said that the registration itself is wrong; nothing more will be sent.
 *
 * @public
 */
export type RegistrationState = 'registering' | 'registered' | 'lost' | 'refused' | 'stopped';

/** A service that is being kept registered. */
export interface Registration extends Subscribable<RegistrationEvents>, AsyncDisposable {
  /** Resolves at the first success; rejects when refused for good or unregistered before. */
  readonly registered: Promise<RegisteredService>;
  state(): RegistrationState;
  /**
   * Stops the heartbeats and removes the registration, unless it has another URL meanwhile. Other
   * instances of the service stay.
   * Disposing of the handle does the same, but reports a failure as `error` event instead of
   * throwing.
   *
   * @throws RegistryError where that could not be done within 5 s; the registration then expires
   * after its TTL.
   */
  unregister(): Promise<void>;
}

const DEFAULT_RETRY: BackOff = { baseMs: 250, maxMs: 5000 };
const UNREGISTER_WITHIN_MS = 5000;

/**
 * Refusals that may end without a change on our side: credentials renewed, name given up, limits
 * passed.
 */
const PASSING_REFUSALS = new Set([401, 403, 408, 409, 425, 429]);

interface Session {
  readonly client: RegistryClient;
  readonly request: RegisterRequest;
  readonly options: RegisterOptions;
  readonly stopping: AbortController;
  readonly emit: ReturnType<typeof createEmitter<RegistrationEvents>>['emit'];
  readonly firstSuccess: PromiseWithResolvers<RegisteredService>;
  state: RegistrationState;
  /** The last answer to a registration. */
  service: RegisteredService | undefined;
  /** When the last successful request was sent: from then the TTL runs, at the earliest. */
  lastSuccessAt: number;
  failures: number;
}

/**
 * Registers the service and keeps it registered until {@link Registration.unregister}: registers
 * with back-off, sends heartbeats, and registers again when the registry no longer knows the
 * service. An unreachable registry is never a reason to stop, and never an exception.
 *
 * @throws TypeError where a server's URL is unusable; RangeError for a heartbeat interval that is
 * not positive.
 */
export function register(options: RegisterOptions): Registration {
  const { name, url, capabilities = [], heartbeatIntervalMs = RECOMMENDED_INTERVAL_MS } = options;
  const { instanceId = defaultInstanceId(), facts, check } = options;
  if (!(heartbeatIntervalMs > 0)) throw new RangeError('heartbeatIntervalMs must be positive');
  const emitter = createEmitter<RegistrationEvents>();
  const session: Session = {
    client: createRegistryClient(options),
    request: {
      service_name: name,
      instance_id: instanceId,
      service_url: url,
      capabilities,
      ...ownZone(),
      ...facts,
      ...(check === undefined ? {} : { check }),
    },
    options,
    stopping: new AbortController(),
    emit: (type, event) => emitter.emit(type, event),
    firstSuccess: Promise.withResolvers(),
    state: 'registering',
    service: undefined,
    lastSuccessAt: 0,
    failures: 0,
  };
  session.firstSuccess.promise.catch(() => undefined);
  const ended = keepRegistered(session);
  let unregistered: Promise<void> | undefined;
  const unregister = () => {
    unregistered ??= stop(session, ended);
    return unregistered;
  };
  return {
    registered: session.firstSuccess.promise,
    state: () => session.state,
    on: (type, listener) => emitter.on(type, listener),
    unregister,
    [Symbol.asyncDispose]: () =>
      unregister().catch((error: unknown) => emitter.emit('error', { error, retryInMs: undefined })),
  };
}

async function keepRegistered(session: Session): Promise<void> {
  const { stopping, options } = session;
  while (!stopping.signal.aborted && session.state !== 'refused') {
    const mustRegister = session.service === undefined || session.state === 'registering';
    const waitMs = mustRegister ? await tryToRegister(session) : await tryHeartbeat(session);
    await pause(waitMs, { signal: stopping.signal, unref: options.unref });
  }
}

/** @returns milliseconds until the next request. */
async function tryToRegister(session: Session): Promise<number> {
  const sentAt = performance.now();
  const again = session.service !== undefined;
  try {
    const service = await session.client.register(session.request);
    session.service = service;
    succeed(session, sentAt);
    session.firstSuccess.resolve(service);
    session.emit('registered', { service, again });
    if (!again && service.healthy === false) await reportHealthy(session, service);
    return untilNextHeartbeat(session, service);
  } catch (error) {
    return again || !isFinalRefusal(error) ? failed(session, error) : refused(session, error);
  }
}

/** The report of a program that ran before under the same id is not this one's. */
async function reportHealthy(
  { client, emit }: Session,
  { service_name, instance_id }: RegisteredService,
): Promise<void> {
  const instance = instance_id === undefined ? {} : { instance_id };
  try {
    await client.reportHealth({ service_name, ...instance, status: 'healthy' });
  } catch (error) {
    emit('error', { error, retryInMs: undefined });
  }
}

/** @returns milliseconds until the next request. */
async function tryHeartbeat(session: Session): Promise<number> {
  const sentAt = performance.now();
  try {
    const { client, request, stopping } = session;
    // Whatever id was answered: a registry that knows no instances ignores this one. Once it is
    // upgraded it answers 400, and the service registers as the instance that it is.
    const options = { instanceId: request.instance_id, signal: stopping.signal };
    const { ttl } = await client.heartbeat(request.service_name, options);
    succeed(session, sentAt);
    session.emit('heartbeat', { ttl });
    return session.service === undefined ? 0 : untilNextHeartbeat(session, session.service);
  } catch (error) {
    if (session.stopping.signal.aborted) return 0;
    if (isUnknownToRegistry(error)) {
      session.state = 'registering';
      session.emit('lost', { reason: 'expired' });
      return 0;
    }
    return failed(session, error);
  }
}

function succeed(session: Session, sentAt: number): void {
  session.lastSuccessAt = sentAt;
  session.failures = 0;
  session.state = 'registered';
}

function refused(session: Session, error: unknown): number {
  session.state = 'refused';
  session.firstSuccess.reject(error);
  session.emit('error', { error, retryInMs: undefined });
  return 0;
}

function failed(session: Session, error: unknown): number {
  session.failures += 1;
  const { service, failures, state, options } = session;
  const isKept = service !== undefined && state !== 'registering';
  const retryInMs = isKept
    ? untilNextHeartbeat(session, service)
    : backOffMs(failures - 1, options.retry ?? DEFAULT_RETRY);
  session.emit('error', { error, retryInMs });
  if (isKept && state === 'registered' && performance.now() - session.lastSuccessAt > service.ttl * 1000) {
    session.state = 'lost';
    session.emit('lost', { reason: 'unreachable' });
  }
  return retryInMs;
}

function untilNextHeartbeat({ options, lastSuccessAt, failures }: Session, { ttl }: RegisteredService): number {
  const { heartbeatIntervalMs: intervalMs = RECOMMENDED_INTERVAL_MS, retry = DEFAULT_RETRY } = options;
  const sinceSuccessMs = performance.now() - lastSuccessAt;
  return nextHeartbeatInMs({ sinceSuccessMs, failures }, scheduleFor(ttl, { intervalMs, retry }));
}

/**
 * 400 is the contract's answer; 404 is what a registry that lost its state, or another one, may
 * say.
 */
function isUnknownToRegistry(error: unknown): boolean {
  return error instanceof RegistryError && (error.status === 400 || error.status === 404);
}

function isFinalRefusal(error: unknown): boolean {
  if (!(error instanceof RegistryError) || error.status === undefined) return false;
  return error.status >= 400 && error.status < 500 && !PASSING_REFUSALS.has(error.status);
}

/** Waits for a registration in flight: sent after it, the removal is the last word. */
async function stop(session: Session, ended: Promise<void>): Promise<void> {
  const wasRefused = session.state === 'refused';
  session.stopping.abort(new Error('unregistered'));
  await ended;
  session.state = 'stopped';
  session.firstSuccess.reject(new Error('unregistered before it was registered'));
  if (wasRefused) return;
  try {
    await removeWithRetries(session, AbortSignal.timeout(UNREGISTER_WITHIN_MS));
  } catch (error) {
    // A registration whose answer never came may exist, or may not: one attempt is all it is worth.
    if (session.service !== undefined) throw error;
  }
}

async function removeWithRetries(session: Session, signal: AbortSignal): Promise<void> {
  let last: unknown;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      return await removeIfOurs(session, signal);
    } catch (error) {
      if (!signal.aborted) last = error;
      if (isFinalRefusal(error) || session.service === undefined) throw error;
      await pause(backOffMs(attempt, session.options.retry ?? DEFAULT_RETRY), { signal });
    }
  }
  throw last ?? new RegistryError('no registry answered in time', { error: 'Registry unreachable' });
}

/**
 * Where the registry knows no instances, or two have one id, a later one registers the same before
 * this one stops: removing it then would hide that one until its next heartbeat.
 */
async function removeIfOurs({ client, request, service }: Session, signal: AbortSignal): Promise<void> {
  const name = request.service_name;
  // Without an answer nobody knows whether the registry has heard of it.
  const instanceId = service === undefined ? request.instance_id : service.instance_id;
  const url = service?.service_url ?? request.service_url;
  try {
    const current = await (instanceId === undefined
      ? client.getService(name, { signal })
      : client.getInstance(name, instanceId, { signal }));
    const isSame = instanceId !== undefined || service === undefined || current.service_id === service.service_id;
    if (current.service_url === url && isSame) await client.unregister(name, { instanceId, signal });
  } catch (error) {
    if (isServiceNotFound(error)) return;
    // A registry that knows no instances has no such page, and may have heard of the name alone.
    const isOlder = service === undefined && error instanceof RegistryError && error.status === 404;
    if (!isOlder) throw error;
    await removeNamed({ client, name, url }, signal);
  }
}

interface Named {
  readonly client: RegistryClient;
  readonly name: string;
  readonly url: string;
}

async function removeNamed({ client, name, url }: Named, signal: AbortSignal): Promise<void> {
  try {
    const current = await client.getService(name, { signal });
    if (current.service_url === url) await client.unregister(name, { signal });
  } catch (error) {
    if (!isServiceNotFound(error)) throw error;
  }
}
