import { annotations, apiVersion } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type ControllerRevision, controllerRevisionKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Change } from '../../runtime/decision.ts';
import { strategyOf } from '../start/preflight.ts';
import { withoutCanaries } from '../traffic/http-route.ts';
import { pinOf, withoutPin } from '../traffic/selector.ts';
import { isMarked } from '../workload/claim.ts';
import { clusterOf, surroundingsOf } from './context.ts';
import type { ClusterView, JobSnapshot, SavedState } from './snapshot.ts';

/** Keeps what the job found, and what it is about to do, in a ControllerRevision of its name. */
export function saveState(job: DeliveryJob, saved: SavedState): Change {
  const { name, namespace, uid = '' } = job.metadata;
  return {
    action: 'create',
    kind: controllerRevisionKind,
    manifest: {
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ownerReferences: [{ apiVersion, kind: 'DeliveryJob', name, uid, controller: true }],
      },
      revision: 1,
      data: saved,
    },
  };
}

/** Deletes what {@link saveState} has made. */
export function deleteState({ metadata: { name, namespace } }: DeliveryJob): Change {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return {
    action: 'delete',
    kind: controllerRevisionKind,
    object: { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata },
  };
}

/**
 * What the job saved; undefined for a revision of anybody else, such as a job of the same name that
 * was deleted.
 */
export function readSavedState(
  job: DeliveryJob,
  revision: Pick<ControllerRevision, 'metadata' | 'data'> | undefined,
): SavedState | undefined {
  if (revision === undefined || revision.metadata.deletionTimestamp !== undefined) return undefined;
  const isOurs = revision.metadata.ownerReferences?.some(({ uid }) => uid === job.metadata.uid) === true;
  return isOurs && isSavedState(revision.data) ? revision.data : undefined;
}

/** Whether a job was about to roll it back. */
function isRollingBack({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[annotations.rollingBack] !== undefined;
}

/**
 * Only this operator writes them, and the API server lets nobody change them: their shape is that
 * of our own.
 */
function isSavedState(data: unknown): data is SavedState {
  return typeof data === 'object' && data !== null && 'deployment' in data && 'target' in data && 'policy' in data;
}

/**
 * What is still known when somebody has deleted the record: how things are now counts as how they
 * were, but for what is plainly the job's. Enough to move traffic off pods that are about to go.
 */
export function reconstructState(snapshot: JobSnapshot): SavedState {
  const { job, policy } = snapshot;
  const cluster = clusterOf(snapshot);
  const { services, routes } = surroundingsOf(snapshot);
  const { template = { spec: { containers: [] } }, strategy, progressDeadlineSeconds } = cluster?.deployment.spec ?? {};
  const version = cluster === undefined ? null : versionThen(job, cluster);
  const versionOf = cluster?.deployment.metadata.annotations?.[annotations.versionOf] ?? null;
  const touched = services.filter((service) => pinOf(service) !== undefined || isRollingBack(service));
  return {
    deployment: {
      template,
      strategy: strategy ?? {},
      progressDeadlineSeconds: progressDeadlineSeconds ?? policy.rolling.progressDeadlineSeconds,
      version,
      versionOf: version === null ? null : versionOf,
    },
    services: touched.map((service) => ({ name: service.metadata.name, selector: withoutPin(service) })),
    routes: withoutCanaries(routes ?? [], services, isRollingBack),
    target: template,
    strategy: strategyOf(job, policy),
    policy,
  };
}

/**
 * The version that a Deployment is said to run, unless this job has said so of a template that is
 * not there any more: neither the one that the job knows to be its own, nor what its last write has
 * made.
 */
function versionThen(job: DeliveryJob, { deployment, fingerprint }: ClusterView): string | null {
  const noted = deployment.metadata.annotations?.[annotations.version] ?? null;
  const { oldVersion, templateFingerprint: known } = job.status ?? {};
  const isOwn = noted === job.spec.version && noted !== oldVersion;
  const isGone = known !== undefined && known !== fingerprint && !isMarked(deployment, job);
  return isOwn && isGone ? null : noted;
}
