import { annotations } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';
import { type Service, serviceKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Change } from '../../runtime/decision.ts';
import { disown } from '../../runtime/field-manager.ts';
import { type JobContext, readyCount } from '../job/context.ts';
import { changedFromOutside } from '../job/failures.ts';
import type { PodGroup, Surroundings } from '../job/snapshot.ts';
import { isSameJson } from '../workload/fingerprint.ts';
import { HASH_LABEL } from '../workload/names.ts';
import { rolloutOf } from '../workload/rollout.ts';
import { lagOf } from './endpoints.ts';

/**
 * Where Services send their traffic: to all pods that they select, or to those of one ReplicaSet.
 */
export type Pin = 'none' | 'stable' | 'extra' | 'current';

/** What there is to do until traffic is where it belongs. */
export interface Steering {
  readonly changes: readonly Change[];
  /** Whether it is there. */
  readonly done: boolean;
  /** Why it cannot go there, or is not there, yet. */
  readonly waits?: string | undefined;
  /** When time alone changes something, in epoch ms. */
  readonly requeueAtMs?: number;
  readonly failure?: DeliveryFailure | undefined;
}

/** Several at once. */
export function together(steerings: readonly Steering[]): Steering {
  return {
    changes: steerings.flatMap(({ changes }) => changes),
    done: steerings.every(({ done }) => done),
    waits: steerings.find(({ waits }) => waits !== undefined)?.waits,
    requeueAtMs: Math.min(...steerings.map(({ requeueAtMs = Infinity }) => requeueAtMs)),
    failure: steerings.find(({ failure }) => failure !== undefined)?.failure,
  };
}

/**
 * Steers the traffic of all saved Services to a pin. Only from where the job may have left it:
 * anything else was changed from outside. Pods that are too few get none.
 */
export function steer(context: JobContext, wanted: Pin, from: readonly Pin[] = []): Steering {
  const known = [wanted, ...from].map((pin) => hashOf(context, pin));
  const [wantedHash] = known;
  const services = savedServices(context);
  for (const { service, selector } of services) {
    const hash = pinOf(service);
    if (!isSameJson(withoutPin(service), selector) || !known.includes(hash ?? '')) {
      return {
        changes: [],
        done: false,
        failure: changedFromOutside(`The selector of Service ${service.metadata.name}`),
      };
    }
  }
  const astray = services.filter(({ service }) => (pinOf(service) ?? '') !== wantedHash);
  if (astray.length === 0) {
    const names = services.map(({ service }) => service.metadata.name);
    const lag = wanted === 'none' ? undefined : lagOf(context, names, groupOf(context, wanted));
    return { changes: [], done: lag === undefined, ...lag };
  }
  const waits = whyNot(context, wanted);
  if (waits !== undefined || wantedHash === undefined) return { changes: [], done: false, waits: waits ?? '' };
  return { changes: astray.map(({ service }) => pinService(service, wantedHash)), done: false };
}

/** Undefined when the pods of the pin may have all traffic. */
function whyNot(context: JobContext, pin: Pin): string | undefined {
  if (pin === 'none') return undefined;
  const { cluster } = context;
  // A pin that leaves nothing out removes nothing, however few they are.
  if (pin === 'stable' && isAlone(context)) return undefined;
  // Pods of the user's Deployment may be about to go, unless it has no others.
  if (pin !== 'extra' && (cluster === undefined || rolloutOf(cluster.deployment) !== 'complete')) {
    return 'The Deployment has a rollout under way';
  }
  const ready = readyCount(groupOf(context, pin));
  if (groupOf(context, pin) !== undefined && ready >= context.replicas) return undefined;
  return `${ready} of ${context.replicas} pods are ready for the traffic`;
}

/**
 * Whether the pods that ran before the job are all that there are, and none of them is about to be
 * replaced.
 */
function isAlone({ cluster, template, stable, extra }: JobContext): boolean {
  if (cluster === undefined || template !== 'saved' || stable?.current !== true) return false;
  return readyCount(extra) === 0 && cluster.replicaSets.every((group) => group === stable || group.pods.length === 0);
}

/** The hash of a pin, '' for none; undefined when there are no such pods. */
function hashOf(context: JobContext, pin: Pin): string | undefined {
  return pin === 'none'
    ? ''
    : (groupOf(context, pin)?.hash ?? (pin === 'stable' ? context.status.stableHash : undefined));
}

function groupOf(context: JobContext, pin: Exclude<Pin, 'none'>): PodGroup | undefined {
  return context[pin];
}

/** A Service that the job found, and the selector that it had. */
export interface SavedService {
  readonly service: Service;
  readonly selector: Readonly<Record<string, string>>;
}

/** Whether a Service leads to the pods of the Deployment at all. */
export function isServed({ services }: Surroundings): boolean {
  return services.some(({ metadata }) => metadata.deletionTimestamp === undefined);
}

/** The Services that the job found, as far as they are still there. */
function savedServices({ saved, around }: JobContext): readonly SavedService[] {
  return saved.services.flatMap(({ name, selector }) => {
    const service = around.services.find(({ metadata }) => metadata.name === name);
    return service === undefined || service.metadata.deletionTimestamp !== undefined ? [] : [{ service, selector }];
  });
}

/**
 * Those of them whose selector is, but for our pin, as the job found it: the traffic of the others
 * is no longer the job's.
 */
export function ownServices(context: JobContext): readonly SavedService[] {
  return savedServices(context).filter(({ service, selector }) => isSameJson(withoutPin(service), selector));
}

/** The hash that a Service is pinned to. */
export function pinOf(service: Service): string | undefined {
  return service.spec?.selector?.[HASH_LABEL];
}

/** A Service's selector as its user knows it. */
export function withoutPin(service: Service): Readonly<Record<string, string>> {
  const { [HASH_LABEL]: _, ...selector } = service.spec?.selector ?? {};
  return selector;
}

/**
 * Whether pods with these labels get traffic of the Service, or would without our pin. One without
 * a selector has no pods of its own.
 */
export function selects(service: Service, podLabels: Readonly<Record<string, string>>): boolean {
  const wanted = Object.entries(withoutPin(service));
  return wanted.length > 0 && wanted.every(([name, value]) => podLabels[name] === value);
}

function pinService(service: Service, hash: string): Change {
  const patch = { spec: { selector: { [HASH_LABEL]: hash === '' ? null : hash } } };
  return { action: 'patch', kind: serviceKind, object: service, patch };
}

/**
 * Sends what traffic is still the job's to a hash, '' being none, and marks the Services as being
 * rolled back: even one that is where it belongs is written once, so that what another operator,
 * that no longer leads, decided on before fails.
 */
export function steerBack(context: JobContext, hash: string): readonly Change[] {
  const uid = context.job.metadata.uid ?? '';
  return savedServices(context).flatMap(({ service, selector }) => {
    const isOurs = isSameJson(withoutPin(service), selector);
    const wanted = isOurs ? hash : '';
    const isThere = (pinOf(service) ?? '') === wanted;
    const spec = isThere ? undefined : { selector: { [HASH_LABEL]: wanted === '' ? null : wanted } };
    return patchAndMark({ kind: serviceKind, object: service }, uid, spec);
  });
}

/** Leaves the Services as their users made them. */
export function releaseServices(context: JobContext): readonly Change[] {
  return savedServices(context).flatMap(({ service }) => {
    const spec = pinOf(service) === undefined ? undefined : { selector: { [HASH_LABEL]: null } };
    const changes = patchAndMark({ kind: serviceKind, object: service }, null, spec);
    return changes.length > 0 ? changes : disown(serviceKind, service, []);
  });
}

/**
 * Marks an object as being rolled back by the job with this uid, null being: by none, and patches
 * its spec. Nothing where all of that is so.
 */
export function patchAndMark(
  target: { readonly kind: ResourceKind<KubeObject>; readonly object: KubeObject },
  uid: string | null,
  spec: object | undefined,
): readonly Change[] {
  const isMarked = (target.object.metadata.annotations?.[annotations.rollingBack] ?? null) === uid;
  if (isMarked && spec === undefined) return [];
  // The mark goes with each write of a way back; without one there is nothing to remove.
  const mark = isMarked && uid === null ? {} : { metadata: { annotations: { [annotations.rollingBack]: uid } } };
  return [{ action: 'patch', ...target, patch: { ...mark, ...(spec === undefined ? {} : { spec }) } }];
}
