import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import type { CheckSubject } from '../checks/check.ts';
import { dueChecks } from '../checks/verification.ts';
import type { ArtifactSettings, ClusterView, JobSnapshot } from '../job/snapshot.ts';
import { policyFor, settlePolicy } from '../start/default-policy.ts';
import { isFinished, isLetGo, queueView } from '../start/queue.ts';
import type { Indexes } from './indexes.ts';
import type { DeliveryInformers } from './informers.ts';
import type { Measurements, VerificationKey } from './measurements.ts';
import type { Refusals } from './refusals.ts';
import { observeRegistrations, type RegistrationCopies } from './registration-view.ts';
import type { SavedStateCache } from './saved-state-cache.ts';
import type { ObserveWorkload } from './workload-observer.ts';

export interface DeliveryObserverDeps {
  readonly informers: DeliveryInformers;
  readonly indexes: Indexes;
  readonly registrations: RegistrationCopies;
  readonly observeWorkload: ObserveWorkload;
  readonly savedStates: SavedStateCache;
  readonly measurements: Measurements;
  readonly refusals: Refusals;
  readonly artifact: ArtifactSettings;
  readonly clock: Clock;
}

/** Gathers all that a decision about a job rests on. */
export type DeliveryObserver = ReturnType<typeof createDeliveryObserver>;

export function createDeliveryObserver(deps: DeliveryObserverDeps) {
  const { informers, indexes, savedStates, measurements, refusals } = deps;
  const isThere = (job: DeliveryJob) => informers.jobs.store.get(objectKey(job))?.metadata.uid === job.metadata.uid;

  function forget(job: DeliveryJob): void {
    measurements.forget(objectKey(job));
    savedStates.forget(job);
    refusals.forget(job);
  }
  informers.jobs.onChange(({ type, object }) => {
    if (type === 'deleted') forget(object);
  });

  function startMeasurements(snapshot: JobSnapshot): void {
    const { job, workload } = snapshot;
    const due = isFinished(job) ? [] : dueChecks(snapshot);
    if (due.length === 0 || workload.found !== 'one') return;
    const subject = (): CheckSubject => ({ job, pods: targetsIn(workload.cluster, informers) });
    measurements.start(verificationOf(job), due, subject);
  }

  return {
    /**
     * Undefined for a job that is gone, or has ended and handed everything back. Has measurements
     * made that are due.
     *
     * @throws as the API server's client.
     */
    async observe(jobKey: string): Promise<JobSnapshot | undefined> {
      const job = informers.jobs.store.get(jobKey);
      if (job === undefined) return undefined;
      if (isLetGo(job)) {
        forget(job);
        return undefined;
      }
      const { serviceName } = job.spec;
      let saved = await savedStates.find(job);
      const policy = saved?.policy ?? policyFor(serviceName, indexes.policies.get);
      const rules = { order: indexes.jobOrder, supersede: policy.supersede };
      const queue = queueView(job, indexes.unfinishedJobs.get(serviceName), rules);
      if (saved === undefined && queue.ahead !== undefined) {
        // Returning to the queue, it deletes its record: also one that another operator has made
        // since this one observed.
        savedStates.forget(job);
        saved = await savedStates.find(job);
      }
      const workload = await deps.observeWorkload({ job, saved, indexes, policy }, queue);
      // Deleted meanwhile: what was forgotten then is not to begin anew.
      if (!isThere(job)) return undefined;
      const snapshot: JobSnapshot = {
        job,
        policy:
          saved?.policy ?? settlePolicy(policy, workload.found === 'one' ? workload.cluster.deployment : undefined),
        queue,
        workload,
        saved,
        artifact: deps.artifact,
        measurements: measurements.completed(verificationOf(job)),
        registrations: observeRegistrations(deps.registrations, serviceName),
        refusal: refusals.of(job),
        now: deps.clock.now(),
      };
      startMeasurements(snapshot);
      return snapshot;
    },
    /** After a failure nobody knows which changes were made. */
    failed: (job: DeliveryJob): void => savedStates.forget(job),
    /** The changes that rest on the snapshot are made. */
    applied({ job, measurements: results }: JobSnapshot): void {
      measurements.recorded(objectKey(job), results);
      refusals.forget(job);
    },
  };
}

/**
 * A verification is one stage at one step; the time distinguishes two passes through the same
 * stage.
 */
function verificationOf(job: DeliveryJob): VerificationKey {
  const { stage, step, stageStartedAt } = job.status ?? {};
  return { jobKey: objectKey(job), id: [job.metadata.uid, stage, step, stageStartedAt].join('/') };
}

/**
 * The pods of the new version that are ready: extra pods, else the pods that the user's Deployment
 * rolls out.
 */
function targetsIn({ extra, replicaSets, deployment }: ClusterView, { pods }: DeliveryInformers): CheckSubject['pods'] {
  const group = extra?.pods ?? replicaSets.find(({ current }) => current);
  const { namespace = '' } = deployment.metadata;
  const ipOf = (name: string) => {
    for (const { store } of pods) {
      const pod = store.get(`${namespace}/${name}`);
      if (pod !== undefined) return pod.status?.podIP;
    }
    return undefined;
  };
  return (group?.pods ?? []).filter(({ ready }) => ready).map(({ name }) => ({ name, ip: ipOf(name) }));
}
