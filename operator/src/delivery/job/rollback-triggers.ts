import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { supersededMessage } from '../start/messages.ts';
import { traitsOf } from '../strategies/strategy.ts';
import type { JobContext } from './context.ts';
import { changedFromOutside, endOf, failure } from './failures.ts';
import type { PodFault } from './snapshot.ts';

/** What ends a job's way forward at any stage, the weightiest first. */
export function findRollbackTrigger(context: JobContext): DeliveryFailure | undefined {
  const { job, cluster, template, claim } = context;
  const stage = traitsOf(context.status.stage);
  if (cluster === undefined) return workloadDeleted(context);
  if (job.metadata.deletionTimestamp !== undefined) return failure('JobDeleted', 'The job was deleted');
  if (job.spec.abort) return failure('Aborted', 'The job was aborted');
  if (isHandedBack(context)) return undefined;
  const { supersededBy } = context.snapshot.queue;
  if (supersededBy !== undefined) return failure('Preempted', supersededMessage(supersededBy));
  if (claim === 'other') return changedFromOutside(`The annotation ${annotations.delivering} of ${nameIn(context)}`);
  if (template === 'foreign') return templateChanged(context);
  if (cluster.deployment.spec.paused === true) {
    return failure('WorkloadPaused', `Deployment ${cluster.deployment.metadata.name} was paused during the job`);
  }
  const newcomer = stage?.isBeforeCutOver === true ? newServiceIn(context) : undefined;
  if (newcomer !== undefined)
    return changedFromOutside(`Service ${newcomer.metadata.name}, which came during the job,`);
  if (stage?.isLast === true) return undefined;
  const fault = findFault(context);
  if (fault !== undefined) return failure(fault.reason, fault.message);
  const { refusal } = context.snapshot;
  return refusal?.isInvalid === true ? failure('ChangeRejected', refusal.message) : undefined;
}

/**
 * What makes a rollback under way one that cannot restore everything. A Deployment that is gone
 * explains all else: where its namespace is deleted, something of the job's may be gone before it.
 *
 * @param lost that nobody knows what there was before.
 */
export function findEscalation(context: JobContext, lost: DeliveryFailure | undefined): DeliveryFailure | undefined {
  const { failure: known, cluster, template } = context;
  if (known === undefined || known.reason === 'WorkloadDeleted') return undefined;
  if (cluster === undefined) return workloadDeleted(context);
  if (endOf(known) === 'Failed') return undefined;
  if (lost !== undefined) return lost;
  if (isHandedBack(context)) return undefined;
  return template === 'foreign' ? templateChanged(context) : undefined;
}

function workloadDeleted({ status }: JobContext): DeliveryFailure {
  return failure('WorkloadDeleted', `Deployment ${status.workload?.name} was deleted during the job`);
}

function templateChanged(context: JobContext): DeliveryFailure {
  return changedFromOutside(`The pod template of ${nameIn(context)}`);
}

function nameIn({ status }: JobContext): string {
  return `Deployment ${status.workload?.name}`;
}

/**
 * Whether the job, at its end, has released the Deployment and another has claimed it: its state is
 * now that one's.
 */
function isHandedBack({ status, claim }: JobContext): boolean {
  return status.stage === 'Finishing' && claim === 'other';
}

/** One that leads to the job's pods, and that it did not find when it began. */
function newServiceIn({ around, saved }: JobContext): Service | undefined {
  const known = new Set(saved.services.map(({ name }) => name));
  return around.services.find(({ metadata }) => !known.has(metadata.name) && metadata.deletionTimestamp === undefined);
}

/** Of the pods of the new version alone: what the old ones suffer from is not the job's. */
function findFault({ extra, current, template }: JobContext): PodFault | undefined {
  const pods = [...(extra?.pods ?? []), ...(template === 'target' ? (current?.pods ?? []) : [])];
  return pods.find(({ fault }) => fault !== undefined)?.fault;
}
