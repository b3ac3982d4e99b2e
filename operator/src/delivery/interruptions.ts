import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { changedFromOutside, endOf, failure } from './failures.ts';
import type { PodFault } from './snapshot.ts';
import type { JobView } from './view.ts';

/** In these the new version has already taken over. */
const lastStages: ReadonlySet<string | undefined> = new Set(['DrainingExtra', 'RemovingExtra', 'Finishing']);

/** In these nobody may get to the new version but by the job; a Service that it has not pinned would lead there. */
const beforeCutOver: ReadonlySet<string | undefined> = new Set([
  'Pinning',
  'BringingUp',
  'Testing',
  'Gate',
  'Routing',
  'Stepping',
  'StepVerifying',
  'StepPausing',
  'FullUp',
]);

/** What ends a job's way forward at any stage, the weightiest first. */
export function findInterruption(view: JobView): DeliveryFailure | undefined {
  const { job, cluster, template, claim } = view;
  if (cluster === undefined) return workloadDeleted(view);
  if (job.metadata.deletionTimestamp !== undefined) return failure('JobDeleted', 'The job was deleted');
  if (job.spec.abort) return failure('Aborted', 'The job was aborted');
  if (isHandedBack(view)) return undefined;
  if (claim === 'other') return changedFromOutside(`The annotation ${annotations.delivering} of ${nameIn(view)}`);
  if (template === 'foreign') return templateChanged(view);
  if (cluster.deployment.spec.paused === true) {
    return failure('WorkloadPaused', `Deployment ${cluster.deployment.metadata.name} was paused during the job`);
  }
  const newcomer = beforeCutOver.has(view.status.stage) ? newServiceIn(view) : undefined;
  if (newcomer !== undefined)
    return changedFromOutside(`Service ${newcomer.metadata.name}, which came during the job,`);
  if (lastStages.has(view.status.stage)) return undefined;
  const fault = findFault(view);
  if (fault !== undefined) return failure(fault.reason, fault.message);
  const { refusal } = view.snapshot;
  return refusal?.isInvalid === true ? failure('ChangeRejected', refusal.message) : undefined;
}

/** What makes a rollback under way one that cannot restore everything. @param lost that nobody knows what there was before. */
export function findEscalation(view: JobView, lost: DeliveryFailure | undefined): DeliveryFailure | undefined {
  const { failure: known, cluster, template } = view;
  if (known === undefined || endOf(known) === 'Failed') return undefined;
  if (lost !== undefined) return lost;
  if (cluster === undefined) return workloadDeleted(view);
  if (isHandedBack(view)) return undefined;
  return template === 'foreign' ? templateChanged(view) : undefined;
}

function workloadDeleted({ status }: JobView): DeliveryFailure {
  return failure('WorkloadDeleted', `Deployment ${status.workload?.name} was deleted during the job`);
}

function templateChanged(view: JobView): DeliveryFailure {
  return changedFromOutside(`The pod template of ${nameIn(view)}`);
}

function nameIn({ status }: JobView): string {
  return `Deployment ${status.workload?.name}`;
}

/** Whether the job, at its end, has let go of the Deployment and another has taken it: what is there now is that one's. */
function isHandedBack({ status, claim }: JobView): boolean {
  return status.stage === 'Finishing' && claim === 'other';
}

/** One that leads to the job's pods, and that it did not find when it began. */
function newServiceIn({ around, saved }: JobView): Service | undefined {
  const known = new Set(saved.services.map(({ name }) => name));
  return around.services.find(({ metadata }) => !known.has(metadata.name) && metadata.deletionTimestamp === undefined);
}

/** Of the pods of the new version alone: what the old ones suffer from is not the job's. */
function findFault({ extra, current, template }: JobView): PodFault | undefined {
  const pods = [...(extra?.pods ?? []), ...(template === 'target' ? (current?.pods ?? []) : [])];
  return pods.find(({ fault }) => fault !== undefined)?.fault;
}
