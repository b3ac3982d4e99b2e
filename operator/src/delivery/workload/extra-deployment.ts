import { annotations, apiVersion, labels } from '@rollcall/crds/kinds.ts';
import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';
import { type Deployment, deploymentKind, type Service, serviceKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change } from '../../runtime/decision.ts';
import { type JobContext, readyCount } from '../job/context.ts';
import { changedFromOutside } from '../job/failures.ts';
import { canaryServiceName, extraDeploymentName } from './names.ts';
import { deadlineSeconds, isObserved, podsOf } from './rollout.ts';

const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'rollcall' };

/** What there is to do until the extra Deployment has the size that is asked for. */
export interface Sizing {
  readonly changes: readonly Change[];
  /** To be in the status before the changes are made. */
  readonly extraReplicas: number;
  /** Whether so many pods as were asked for now are ready. */
  readonly ready: boolean;
  readonly failure?: DeliveryFailure;
}

/**
 * Brings the extra Deployment to a size; it never makes it smaller. It is made without pods, which come by a
 * patch: a creation that another operator, which no longer leads, decided on long ago looks like a
 * wanted one and must do no harm.
 */
export function sizeExtra(context: JobContext, wanted: number): Sizing {
  const { status, cluster, around } = context;
  const before = status.extraReplicas ?? 0;
  const size = Math.max(before, wanted);
  const rest = { extraReplicas: size, ready: false };
  const extra = around.extra?.deployment;
  if (extra === undefined || extra.metadata.deletionTimestamp !== undefined) {
    if (before > 0 || cluster === undefined) {
      return { ...rest, changes: [], failure: changedFromOutside('The Deployment of the new version') };
    }
    return {
      ...rest,
      extraReplicas: 0,
      changes: extra === undefined ? [createExtra(context, cluster.deployment)] : [],
    };
  }
  if (extra.spec.replicas !== size) return { ...rest, changes: [scaleExtra(extra, size)] };
  const available = extra.status?.availableReplicas ?? 0;
  const ready =
    isObserved(extra) && available >= wanted && context.extra !== undefined && readyCount(context.extra) >= wanted;
  return { ...rest, changes: [], ready };
}

/**
 * How many pods a canary may add to those that the Deployment asks for; undefined: as many as it
 * needs. With a limit it never has all traffic, but stands in for pods of the Deployment.
 */
export function surgeLimit({ policy, replicas, saved }: JobContext): number | undefined {
  const { maxSurge } = policy.canary;
  return saved.strategy !== 'Canary' || maxSurge === undefined ? undefined : podsOf(maxSurge, replicas, Math.ceil);
}

/** How many extra pods there are while the Deployment's own are replaced. */
export function fullSize(context: JobContext): number {
  return Math.min(context.replicas, surgeLimit(context) ?? Infinity);
}

/** Removes what the job made, pods first; nothing when all of it is gone. */
export function removeExtra({ around }: Pick<JobContext, 'around'>): readonly Change[] {
  const services = [...around.extraServices.values()]
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((object): Change => ({ action: 'delete', kind: serviceKind, object }));
  const extra = around.extra;
  if (extra === undefined || extra.deployment.metadata.deletionTimestamp !== undefined) return services;
  const { deployment } = extra;
  if (deployment.spec.replicas !== 0) return [...services, scaleExtra(deployment, 0)];
  return hasAtMost(0, extra) ? [...services, { action: 'delete', kind: deploymentKind, object: deployment }] : services;
}

/**
 * Removes the pods of an extra Deployment that never had traffic at once: `status.extraReplicas` is
 * 0 then.
 */
export function emptyExtra({ around, status }: JobContext): readonly Change[] {
  return status.extraReplicas === 0 ? dropPods(around) : [];
}

/** Leaves an extra Deployment without pods. */
export function dropPods({ extra }: JobContext['around']): readonly Change[] {
  if (extra === undefined || extra.deployment.metadata.deletionTimestamp !== undefined) return [];
  return extra.deployment.spec.replicas === 0 ? [] : [scaleExtra(extra.deployment, 0)];
}

/** Whether nothing is left that the job made. */
export function isExtraGone({ around }: Pick<JobContext, 'around'>): boolean {
  return around.extra === undefined && around.extraServices.size === 0;
}

/** Of pods that have lost their traffic, those that are too many go. @returns undefined once they are gone. */
export function shrinkExtra({ around }: JobContext, size: number): readonly Change[] | undefined {
  const extra = around.extra;
  if (extra === undefined) return undefined;
  if ((extra.deployment.spec.replicas ?? 0) > size) return [scaleExtra(extra.deployment, size)];
  return hasAtMost(size, extra) ? undefined : [];
}

/** Whether no more pods are left of it. */
function hasAtMost(size: number, { deployment, pods }: NonNullable<JobContext['around']['extra']>): boolean {
  return isObserved(deployment) && (deployment.status?.replicas ?? 0) <= size && (pods?.pods.length ?? 0) <= size;
}

function scaleExtra(extra: Deployment, replicas: number): Change {
  return { action: 'patch', kind: deploymentKind, object: extra, patch: { spec: { replicas } } };
}

function createExtra(context: JobContext, deployment: Deployment): Change {
  const { saved, policy, job } = context;
  const { selector, minReadySeconds } = deployment.spec;
  const mark = { [labels.job]: job.metadata.uid ?? '' };
  const { target } = saved;
  const strategy = saved.strategy === 'BlueGreen' ? 'BlueGreen' : 'Canary';
  return {
    action: 'create',
    kind: deploymentKind,
    manifest: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      // No labels of the user's: GitOps tools treat what carries theirs as their own, and delete
      // what they do not know.
      metadata: {
        ...madeFor(context, extraDeploymentName(deployment.metadata.name, strategy)),
        annotations: { [annotations.version]: job.spec.version },
      },
      spec: {
        replicas: 0,
        selector: { ...selector, matchLabels: { ...selector.matchLabels, ...mark } },
        template: { ...target, metadata: { ...target.metadata, labels: { ...target.metadata?.labels, ...mark } } },
        ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
        progressDeadlineSeconds: deadlineSeconds(policy, deployment),
        revisionHistoryLimit: 0,
      },
    },
  };
}

/** The Services, not there yet, that routes send the canary's share to. */
export function createCanaryServices(context: JobContext, names: readonly string[]): readonly Change[] {
  const { around, saved, job } = context;
  return names.flatMap((name): Change[] => {
    const service = around.services.find(({ metadata }) => metadata.name === name);
    const selector = saved.services.find((other) => other.name === name)?.selector;
    if (service === undefined || selector === undefined || around.extraServices.has(name)) return [];
    return [
      {
        action: 'create',
        kind: serviceKind,
        manifest: {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: madeFor(context, canaryServiceName(name)),
          spec: { ports: portsOf(service), selector: { ...selector, [labels.job]: job.metadata.uid ?? '' } },
        },
      },
    ];
  });
}

type Port = NonNullable<NonNullable<Service['spec']>['ports']>[number];

/** A port on every node can be bound once only. */
function portsOf(service: Service): readonly Port[] {
  return (service.spec?.ports ?? []).map((port: Port & { readonly nodePort?: number }) => {
    const { nodePort: _, ...rest } = port;
    return rest;
  });
}

/** Garbage collection knows owners of the same namespace only; elsewhere the label has to do. */
function madeFor({ job, status }: JobContext, name: string): ObjectMeta {
  const { namespace, uid = '', name: jobName } = job.metadata;
  const workloadNamespace = status.workload?.namespace ?? namespace;
  const owner = { apiVersion, kind: 'DeliveryJob', name: jobName, uid, controller: true };
  return {
    name,
    ...(workloadNamespace === undefined ? {} : { namespace: workloadNamespace }),
    labels: { ...MANAGED_BY, [labels.job]: uid },
    ...(workloadNamespace === namespace ? { ownerReferences: [owner] } : {}),
  };
}
