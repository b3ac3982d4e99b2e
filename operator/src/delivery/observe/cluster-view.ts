import { labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Deployment, HttpRoute, Pod, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { ClusterView, Obstacles, PodGroup, PodView, SavedState, Surroundings } from '../job/snapshot.ts';
import { selects } from '../traffic/selector.ts';
import { templateFingerprint } from '../workload/fingerprint.ts';
import { canaryServiceName, HASH_LABEL, REVISION_ANNOTATION } from '../workload/names.ts';
import type { Indexes } from './indexes.ts';
import { podFault, podWait } from './pod-faults.ts';
import { type DigestedReplicaSet } from './trim-workloads.ts';

/** What is known of one job and of everything. */
export interface Knowledge {
  readonly job: DeliveryJob;
  readonly saved: SavedState | undefined;
  readonly indexes: Indexes;
}

/**
 * @returns the Services of the namespace that concern a job, by name: Services that select such
 * pods, and Services that it saved.
 */
export function concernedServices(
  { saved, indexes }: Knowledge,
  namespace: string,
  podLabels: Readonly<Record<string, string>>,
): Service[] {
  const savedNames = new Set(saved?.services.map(({ name }) => name));
  return indexes.services
    .get(namespace)
    .filter((service) => service.metadata.labels?.[labels.job] === undefined)
    .filter((service) => savedNames.has(service.metadata.name) || selects(service, podLabels))
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

export interface SurroundingsInput extends Knowledge {
  readonly namespace: string;
  readonly services: readonly Service[];
  readonly routes: readonly HttpRoute[] | undefined;
}

/** What the job changes or makes beside the Deployment. */
export function buildSurroundings({ job, namespace, services, routes, indexes }: SurroundingsInput): Surroundings {
  const { uid = '' } = job.metadata;
  const isHere = ({ metadata }: Deployment) => metadata.namespace === namespace;
  const deployment = indexes.extraDeployments.get(uid).find(isHere);
  const made = indexes.services.get(namespace).filter(({ metadata }) => metadata.labels?.[labels.job] === uid);
  const extraServices = new Map<string, Service>();
  for (const { metadata } of services) {
    const beside = made.find(({ metadata: { name } }) => name === canaryServiceName(metadata.name));
    if (beside !== undefined) extraServices.set(metadata.name, beside);
  }
  const groups = deployment === undefined ? [] : podGroupsOf(deployment, indexes);
  return {
    extra: deployment === undefined ? undefined : { deployment, pods: groups.find(({ current }) => current) },
    services,
    extraServices,
    routes,
    endpoints: undefined,
  };
}

export interface ClusterViewInput {
  readonly surroundings: Surroundings;
  readonly deployment: Deployment;
  readonly obstacles: Obstacles;
}

/** All that there is around the Deployment. */
export function buildClusterView({ job, indexes }: Knowledge, input: ClusterViewInput): ClusterView {
  const { surroundings, deployment, obstacles } = input;
  const { stableHash, previousRevision } = job.status ?? {};
  const replicaSets = podGroupsOf(deployment, indexes).filter(
    ({ pods, current, hash, revision }) =>
      pods.length > 0 || current || hash === stableHash || revision === previousRevision,
  );
  const fingerprint = templateFingerprint(deployment.spec.template);
  return { ...surroundings, ...obstacles, deployment, fingerprint, replicaSets };
}

/** Newest revision first. */
function podGroupsOf(deployment: Deployment, indexes: Indexes): PodGroup[] {
  const replicaSets = indexes.replicaSets.get(deployment.metadata.uid ?? '');
  const wanted = templateFingerprint(deployment.spec.template);
  // As the Deployment's controller does: of several with its template, the oldest is the one.
  const [current] = replicaSets.filter(({ spec }) => spec.templateFingerprint === wanted).toSorted(compareAge);
  return replicaSets
    .map((replicaSet) => ({
      hash: replicaSet.metadata.labels?.[HASH_LABEL] ?? '',
      revision: Number(replicaSet.metadata.annotations?.[REVISION_ANNOTATION] ?? 0),
      current: replicaSet === current,
      pods: indexes.pods
        .get(replicaSet.metadata.uid ?? '')
        .filter(isInUse)
        .map(viewOf)
        .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    }))
    .toSorted((a, b) => b.revision - a.revision);
}

function compareAge(a: DigestedReplicaSet, b: DigestedReplicaSet): number {
  const [ageA = '', ageB = ''] = [a, b].map(({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`);
  return ageA < ageB ? -1 : 1;
}

/** Whether a pod runs, or is about to. */
export function isInUse({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

function viewOf(pod: Pod): PodView {
  const ready = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  const waits = ready ? undefined : podWait(pod);
  const restarts = pod.status?.containerStatuses?.reduce((sum, { restartCount }) => sum + restartCount, 0) ?? 0;
  const fault = podFault(pod);
  return {
    name: pod.metadata.name,
    ready,
    ...(waits === undefined ? {} : { waits }),
    restarts,
    fault,
    ...(!ready && restarts === 0 && fault === undefined && !wasReady(pod) ? { isComingUp: true } : {}),
  };
}

/**
 * The kubelet says with the first status of a pod, which has its start time, that the pod is not
 * ready.
 */
const FIRST_STATUS_MS = 1000;

/** Whether a pod that is not ready has been; also where that is unknown. */
function wasReady({ status }: Pod): boolean {
  const condition = status?.conditions?.find(({ type }) => type === 'Ready');
  if (condition === undefined) return false;
  const { lastTransitionTime = '' } = condition;
  const changedMs = Date.parse(lastTransitionTime);
  const startedMs = Date.parse(status?.startTime ?? '');
  return !(changedMs <= startedMs + FIRST_STATUS_MS);
}
