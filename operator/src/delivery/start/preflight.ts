import { annotations, isLabelValue, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryFailure, DeliveryJob, DeliveryPolicySpec, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import { isUpdate } from '@rollcall/platform/version-order.ts';
import type { ClusterView, JobSnapshot } from '../job/snapshot.ts';
import { backendsOf } from '../traffic/http-route.ts';
import { pinOf } from '../traffic/selector.ts';
import { targetTemplate } from '../workload/artifact.ts';
import { claimInTheWay } from '../workload/claim.ts';
import { isAsDesired } from '../workload/fingerprint.ts';
import { canaryServiceName, extraDeploymentName } from '../workload/names.ts';
import { runningVersion, VERSION_LABEL } from '../workload/version.ts';

/** What the job asks for, else the policy; the fastest where it is to be immediate. */
export function strategyOf({ spec }: DeliveryJob, policy: DeliveryPolicySpec): DeliveryStrategy {
  return spec.immediate === true ? 'Rolling' : (spec.strategy ?? policy.strategy);
}

/** Why a job cannot begin, with nothing touched yet; undefined when it can. */
export function preflightFault(snapshot: JobSnapshot): DeliveryFailure | undefined {
  const { workload, job } = snapshot;
  const { serviceName } = job.spec;
  switch (workload.found) {
    case 'none':
      return { reason: 'WorkloadNotFound', message: notFound(serviceName) };
    case 'forbidden':
      return {
        reason: 'NamespaceNotAllowed',
        message: `The Deployment of ${serviceName} is in the namespace ${workload.namespace}, which is not delivered to: add it to delivery.namespaces of the chart`,
      };
    case 'many':
      return {
        reason: 'WorkloadAmbiguous',
        message: `More than one Deployment is labelled as the service ${serviceName}: ${workload.names.join(', ')}`,
      };
    case 'gone':
      return { reason: 'WorkloadDeleted', message: 'The Deployment was deleted before anything was changed' };
    case 'one':
    default:
      return clusterFault(snapshot, workload.cluster);
  }
}

/** For who installed the chart with its defaults, and whose Deployment has the label already. */
const OTHER_NAMESPACE = '; if it is in another namespace, add that to delivery.namespaces of the chart';

function notFound(serviceName: string): string {
  if (isLabelValue(serviceName)) {
    const label = `label it ${labels.service}=${serviceName}`;
    return `No Deployment is labelled as the service ${serviceName}: ${label}${OTHER_NAMESPACE}`;
  }
  const marks = `label it ${labels.service}=true, and annotate it ${annotations.serviceName}='${serviceName}'`;
  return `No Deployment runs the service ${serviceName}, a name that can be no label: ${marks}${OTHER_NAMESPACE}`;
}

function clusterFault(snapshot: JobSnapshot, cluster: ClusterView): DeliveryFailure | undefined {
  const { job, policy, artifact } = snapshot;
  const { deployment } = cluster;
  const { name, deletionTimestamp } = deployment.metadata;
  if (deletionTimestamp !== undefined) {
    return { reason: 'WorkloadDeleted', message: `Deployment ${name} is being deleted` };
  }
  // As another job has it for now; this one waits for how it leaves it.
  if (claimInTheWay(cluster, job) !== undefined) return undefined;
  const notNewer = job.spec.onlyIfNewer === true ? notNewerMessage(job, deployment) : undefined;
  if (notNewer !== undefined) return { reason: 'NotNewer', message: notNewer };
  if (deployment.spec.paused === true) {
    return { reason: 'WorkloadPaused', message: `Deployment ${name} is paused: nothing that is put there rolls out` };
  }
  const target = targetTemplate(job, deployment, artifact);
  if (target.template === undefined) return { reason: 'ArtifactNotSupported', message: target.fault };
  const strategy = strategyOf(job, policy);
  const fault = strategy === 'Rolling' ? undefined : extraFault(cluster, strategy);
  if (fault !== undefined || isAsDesired(target.template, deployment.spec.template)) return fault;
  return pinFault(cluster) ?? (strategy === 'BlueGreen' ? noTrafficFault(cluster) : undefined);
}

/** Versions that say nothing: `latest` is whatever was pushed last, and also what no tag means. */
const unknownVersions: ReadonlySet<string> = new Set(['', 'latest']);

/** What runs may be newer where nobody knows its version: an automatic deploy must not replace it. */
function notNewerMessage({ spec }: DeliveryJob, deployment: Deployment): string | undefined {
  const { name } = deployment.metadata;
  const running = runningVersion(deployment, spec) ?? '';
  if (unknownVersions.has(running)) {
    const way = `deploy ${spec.version} by a call, or set the label ${VERSION_LABEL} of the Deployment for later versions`;
    return `Nothing says which version Deployment ${name} runs, so ${spec.version} may not be newer: ${way}`;
  }
  return isUpdate(running, spec.version)
    ? undefined
    : `Deployment ${name} runs ${running}, and ${spec.version} is not newer`;
}

/** Both versions of a worker read the same queue: nothing can be switched from one to the other. */
function noTrafficFault({ deployment, services }: ClusterView): DeliveryFailure | undefined {
  if (services.length > 0 || deployment.spec.replicas === 0) return undefined;
  const why = `No Service leads to the pods of Deployment ${deployment.metadata.name}`;
  const message = `${why}: blue-green has no traffic to switch. Use rolling, or canary for a share of the pods`;
  return { reason: 'StrategyNotSupported', message };
}

/**
 * New pods have another hash, by whatever strategy they come: such a Service would be left with
 * none.
 */
function pinFault({ services }: ClusterView): DeliveryFailure | undefined {
  const pinned = services.find((service) => pinOf(service) !== undefined);
  if (pinned === undefined) return undefined;
  const message = `Service ${pinned.metadata.name} selects pods by pod-template-hash, which only a job may`;
  return { reason: 'StrategyNotSupported', message };
}

/** Strategies with pods of their own need names for them, and Services that they can pin. */
function extraFault(cluster: ClusterView, strategy: 'BlueGreen' | 'Canary'): DeliveryFailure | undefined {
  const { deployment, taken } = cluster;
  if (deployment.spec.strategy?.type === 'Recreate') {
    const why = `Deployment ${deployment.metadata.name} has the strategy Recreate: it cannot run two versions at once`;
    return { reason: 'StrategyNotSupported', message: `${why}. Use rolling, which stops the service meanwhile` };
  }
  const names = [
    `Deployment ${extraDeploymentName(deployment.metadata.name, strategy)}`,
    ...(strategy === 'Canary' ? routedServices(cluster).map((name) => `Service ${canaryServiceName(name)}`) : []),
  ];
  const name = names.find((wanted) => taken.includes(wanted));
  if (name !== undefined) return { reason: 'NameTaken', message: `${name} is there already, and not this job's` };
  const [shared] = cluster.shared;
  if (shared === undefined) return undefined;
  const { service, pod } = shared;
  const message = `Service ${service} selects pods of others too, such as ${pod}, which would get nothing from it any more`;
  return { reason: 'StrategyNotSupported', message };
}

/** The Services that routes point at. */
export function routedServices({ services, routes }: Pick<ClusterView, 'services' | 'routes'>): readonly string[] {
  const names = new Set(services.map(({ metadata }) => metadata.name));
  return [...new Set((routes ?? []).flatMap((route) => backendsOf(route, names)))];
}
