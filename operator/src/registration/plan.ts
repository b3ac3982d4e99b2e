import { isDeepStrictEqual } from 'node:util';
import { isLabelValue, labels, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { HealthCheckStatus, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { type Condition, setCondition } from '@rollcall/platform/kube/conditions.ts';
import type { Change, Decision } from '../runtime/decision.ts';
import { pick } from '../runtime/object-fields.ts';
import { HEALTHY, healthCondition, isUnhealthy } from './health.ts';

/** What keeps a registration alive. Deadlines and now are monotonic ms. */
export type Liveness =
  /** Nothing has to: it was made to stay. */
  | { readonly by: 'itself' }
  | {
      readonly by: 'heartbeats';
      readonly ttlMs: number;
      /** Undefined while blind: nobody knows whether a heartbeat came. */
      readonly deadlineMs: number | undefined;
      /** Its own Lease, where there is one; its deletion is what makes an expiry final. */
      readonly lease: Lease | undefined;
      /** RFC 3339 time of the last one known, by the clock of who wrote it. */
      readonly lastHeartbeatAt: string | undefined;
    }
  | {
      readonly by: 'endpoints';
      readonly ttlMs: number;
      /** Undefined while blind, and while an endpoint is ready. */
      readonly deadlineMs: number | undefined;
      /** Of the registration of one endpoint: whether that is; undefined while nobody can tell. */
      readonly ready: boolean | undefined;
    };

/** What can end. */
type MortalLiveness = Exclude<Liveness, { by: 'itself' }>;

/** All that a decision about one registration rests on. */
export interface RegistrationSnapshot {
  readonly registration: ServiceRegistration;
  readonly liveness: Liveness;
  /** What the check has come to that it declares. */
  readonly check: HealthCheckStatus | undefined;
  /**
   * When an Expired registration is to be deleted (monotonic ms); undefined when it is to be kept.
   */
  readonly deleteAtMs: number | undefined;
  readonly nowMs: number;
  readonly now: Date;
}

/**
 * Expires what is past its deadline, deletes what has been Expired for long enough, and keeps the
 * status of the rest true.
 */
export function planRegistration(snapshot: RegistrationSnapshot): Decision {
  const { registration, liveness } = snapshot;
  if (registration.metadata.deletionTimestamp !== undefined) return { changes: [] };
  if (registration.status?.phase === 'Expired') return planRetention(snapshot);
  const expiry = findExpiry(snapshot);
  if (expiry !== undefined) return planExpiry(snapshot, expiry.liveness);
  const changes = planRegistered(snapshot);
  const requeueAfterMs = untilNextCheck(liveness, snapshot.nowMs);
  return requeueAfterMs === undefined ? { changes } : { changes, requeueAfterMs };
}

/** Why the decision on this snapshot is to expire; undefined when it is not. */
export function findExpiry({
  registration,
  liveness,
  nowMs,
}: RegistrationSnapshot): { readonly liveness: MortalLiveness; readonly deadlineMs: number } | undefined {
  if (registration.status?.phase === 'Expired' || liveness.by === 'itself') return undefined;
  const { deadlineMs } = liveness;
  return deadlineMs !== undefined && deadlineMs <= nowMs ? { liveness, deadlineMs } : undefined;
}

function untilNextCheck(liveness: Liveness, nowMs: number): number | undefined {
  if (liveness.by === 'itself') return undefined;
  if (liveness.deadlineMs !== undefined) return liveness.deadlineMs - nowMs;
  // Connectivity comes back at some time after now, and nothing expires within a TTL of that.
  return liveness.by === 'heartbeats' ? liveness.ttlMs : undefined;
}

function planRetention({ registration, deleteAtMs, nowMs }: RegistrationSnapshot): Decision {
  if (deleteAtMs === undefined) return { changes: [] };
  if (nowMs < deleteAtMs) return { changes: [], requeueAfterMs: deleteAtMs - nowMs };
  return { changes: [{ action: 'delete', kind: serviceRegistrationKind, object: registration }] };
}

/**
 * The Lease goes first: a heartbeat that was written before makes that fail, one that comes after
 * finds no Lease and is refused, so none is acknowledged for a registration that is being expired.
 */
function planExpiry({ registration, now }: RegistrationSnapshot, liveness: MortalLiveness): Decision {
  const changes: Change[] = [];
  if (liveness.by === 'heartbeats' && liveness.lease !== undefined) {
    changes.push({ action: 'delete', kind: leaseKind, object: liveness.lease });
  }
  const { reason, message } = describeExpiry(registration, liveness);
  const status = buildStatus(registration, {
    phase: 'Expired',
    phaseSince: now.toISOString(),
    check: endpointCheck(registration, liveness, now),
    conditions: [{ type: 'Ready', status: 'False', reason, message }],
  });
  changes.push({ action: 'status', kind: serviceRegistrationKind, object: registration, status });
  changes.push({ action: 'event', regarding: registration, type: 'Warning', reason: 'Expired', message });
  return { changes };
}

function describeExpiry(
  { spec }: ServiceRegistration,
  liveness: MortalLiveness,
): { readonly reason: string; readonly message: string } {
  const seconds = liveness.ttlMs / 1000;
  if (liveness.by === 'endpoints') {
    const what = spec.instanceId === undefined ? 'No endpoint of the Service was' : 'The endpoint was not';
    return { reason: 'EndpointsNotReady', message: `${what} ready for ${seconds} s` };
  }
  const last = liveness.lastHeartbeatAt;
  const heard = last === undefined ? 'none is known' : `the last was at ${last}`;
  return { reason: 'HeartbeatLapsed', message: `No heartbeat for ${seconds} s; ${heard}` };
}

function planRegistered(snapshot: RegistrationSnapshot): Change[] {
  const { registration, liveness, now } = snapshot;
  const known = registration.status;
  const check = checkStatus(snapshot);
  const createdAt = registration.metadata.creationTimestamp ?? now.toISOString();
  const healthy = healthCondition(known, check);
  const status = buildStatus(registration, {
    phase: 'Registered',
    phaseSince: known?.phase === 'Registered' ? (known.phaseSince ?? createdAt) : createdAt,
    check,
    conditions: [
      { type: 'Ready', status: 'True', ...describeLife(liveness) },
      ...(healthy === undefined ? [] : [{ ...healthy, since: now.toISOString() }]),
    ],
  });
  // A change at a time: the second would be of an object that is not as it was observed any more.
  if (isSameStatus(registration, status)) return addLabel(registration);
  const change: Change = { action: 'status', kind: serviceRegistrationKind, object: registration, status };
  return [change, ...eventsOf(snapshot)];
}

/** What somebody declares is to be found by its service, too. A label that is there stays as it is. */
function addLabel(registration: ServiceRegistration): Change[] {
  const { serviceName } = registration.spec;
  if (registration.metadata.labels?.[labels.service] !== undefined || !isLabelValue(serviceName)) return [];
  const patch = { metadata: { labels: { [labels.service]: serviceName } } };
  return [{ action: 'patch', kind: serviceRegistrationKind, object: registration, patch }];
}

function eventsOf(snapshot: RegistrationSnapshot): Change[] {
  const { registration } = snapshot;
  const { serviceName, url } = registration.spec;
  const event = { action: 'event', regarding: registration } as const;
  const events: Change[] = [];
  if (registration.status?.phase !== 'Registered') {
    events.push({ ...event, type: 'Normal', reason: 'Registered', message: `${serviceName} is registered at ${url}` });
  }
  const change = findHealthChange(snapshot);
  const { message = 'It is not known to be unhealthy any more' } =
    healthCondition(registration.status, checkStatus(snapshot)) ?? {};
  if (change === 'unhealthy') events.push({ ...event, type: 'Warning', reason: 'Unhealthy', message });
  if (change === 'healthy') events.push({ ...event, type: 'Normal', reason: 'Healthy', message });
  return events;
}

/** What the decision on this snapshot reports of its health; undefined when that is as it was. */
export function findHealthChange(snapshot: RegistrationSnapshot): 'healthy' | 'unhealthy' | undefined {
  const { status } = snapshot.registration;
  const isNow = healthCondition(status, checkStatus(snapshot))?.status === 'False';
  if (isNow === isUnhealthy(status?.conditions)) return undefined;
  return isNow ? 'unhealthy' : 'healthy';
}

function describeLife(liveness: Liveness): { reason: string; message: string } {
  if (liveness.by === 'itself') return { reason: 'Static', message: 'No heartbeats are expected' };
  if (liveness.by === 'endpoints') {
    return { reason: 'EndpointsReady', message: 'Ready endpoints of the Service keep it alive' };
  }
  return { reason: 'Heartbeating', message: `A heartbeat is due every ${liveness.ttlMs / 1000} s at the latest` };
}

function checkStatus({ registration, liveness, check, now }: RegistrationSnapshot): HealthCheckStatus | undefined {
  return endpointCheck(registration, liveness, now) ?? check;
}

/** An endpoint that is not ready gets requests only where no other is: as after a check that failed. */
function endpointCheck(
  { spec, status }: ServiceRegistration,
  liveness: Liveness,
  now: Date,
): HealthCheckStatus | undefined {
  if (liveness.by !== 'endpoints' || spec.instanceId === undefined) return undefined;
  if (liveness.ready === undefined) return status?.check;
  const state = liveness.ready ? 'Passing' : 'Failing';
  if (status?.check?.status === state) return status.check;
  return { status: state, since: now.toISOString(), message: `The endpoint is ${liveness.ready ? '' : 'not '}ready` };
}

/** Every status field that the operator owns; server-side apply removes what it leaves out. */
function buildStatus(
  { metadata, status }: ServiceRegistration,
  next: {
    readonly phase: 'Registered' | 'Expired';
    readonly phaseSince: string;
    readonly check?: HealthCheckStatus | undefined;
    /** All that are to be there. */
    readonly conditions: readonly (Pick<Condition, 'type' | 'status' | 'reason' | 'message'> & {
      /** Where its status has changed; by default with the phase. */
      readonly since?: string;
    })[];
  },
) {
  const observedGeneration = metadata.generation ?? 0;
  return {
    phase: next.phase,
    phaseSince: next.phaseSince,
    registeredAt: status?.registeredAt ?? metadata.creationTimestamp ?? next.phaseSince,
    observedGeneration,
    ...(next.check === undefined ? {} : { check: next.check }),
    conditions: next.conditions.flatMap(({ since = next.phaseSince, ...condition }) => {
      const known = ownConditions(status).filter(({ type }) => type === condition.type);
      return setCondition(known, { ...condition, observedGeneration }, since);
    }),
  };
}

function isSameStatus({ status }: ServiceRegistration, next: ReturnType<typeof buildStatus>): boolean {
  const known = pick(status, 'phase', 'phaseSince', 'registeredAt', 'observedGeneration', 'check');
  return isDeepStrictEqual({ ...known, conditions: ownConditions(status) }, next);
}

function ownConditions(status: ServiceRegistration['status']): readonly Condition[] {
  return status?.conditions?.filter(({ type }) => type === 'Ready' || type === HEALTHY) ?? [];
}
