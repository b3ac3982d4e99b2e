import type { Pod } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { PodFault, PodWait } from '../job/snapshot.ts';
import { FETCHER_CONTAINER } from '../workload/artifact.ts';

/**
 * From so many restarts on a container counts as crashing for ever, also between two of its
 * crashes.
 */
const RESTART_LIMIT = 3;

/** Reasons of waiting containers that waiting does not mend. */
const waitingReasons: ReadonlyMap<string, PodFault['reason']> = new Map([
  ['ImagePullBackOff', 'ImagePullFailed'],
  ['ErrImagePull', 'ImagePullFailed'],
  ['ErrImageNeverPull', 'ImagePullFailed'],
  ['InvalidImageName', 'ImagePullFailed'],
  ['ImageInspectError', 'ImagePullFailed'],
  ['CrashLoopBackOff', 'CrashLoop'],
  ['CreateContainerConfigError', 'ContainerConfigInvalid'],
  ['CreateContainerError', 'ContainerConfigInvalid'],
  ['RunContainerError', 'ContainerConfigInvalid'],
]);

type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

/** Why a pod will never become ready as it is; undefined as long as it may. */
export function podFault({ status, metadata }: Pod): PodFault | undefined {
  const init = status?.initContainerStatuses ?? [];
  for (const container of [...init, ...(status?.containerStatuses ?? [])]) {
    const fault = containerFault(container);
    if (fault !== undefined)
      return { ...fault, message: `Pod ${metadata.name}, container ${container.name}: ${fault.message}` };
  }
  return undefined;
}

/** What every container waits for when it comes up. */
const usualReasons: ReadonlySet<string | undefined> = new Set(['ContainerCreating', 'PodInitializing']);

/** What a pod waits for that is not ready; undefined where it does not say. */
export function podWait({ status, metadata }: Pod): PodWait | undefined {
  const wait = (text: string, isUsual: boolean) => ({ message: `Pod ${metadata.name}: ${text}`, isUsual });
  const unmet = (type: string) => status?.conditions?.find((one) => one.type === type && one.status !== 'True');
  const unscheduled = unmet('PodScheduled');
  if (unscheduled !== undefined) {
    const isUnscheduled = unscheduled.reason === 'Unschedulable';
    return { ...wait(said(unscheduled), false), ...(isUnscheduled ? { isUnscheduled } : {}) };
  }
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const waiting = containers.map(({ name, state }) => ({ name, ...state?.waiting })).filter(({ reason }) => reason);
  const unusual = waiting.find(({ reason }) => !usualReasons.has(reason));
  if (unusual !== undefined) return wait(`container ${unusual.name}: ${said(unusual)}`, false);
  const [creating] = waiting.filter(({ reason }) => reason === 'ContainerCreating');
  // Kubernetes reports volumes, networks and slow images in Events alone.
  const hint = `its Events say why: kubectl describe pod ${metadata.name}`;
  if (creating !== undefined) return wait(`container ${creating.name} is being created; ${hint}`, true);
  const unready = unmet('Ready');
  const text = unready === undefined ? '' : said(unready);
  return text === '' ? undefined : wait(text, true);
}

function said({ reason, message }: { readonly reason?: string; readonly message?: string }): string {
  return [reason, message].filter((part) => part !== undefined && part !== '').join(': ');
}

function containerFault(container: ContainerStatus): PodFault | undefined {
  if (container.name === FETCHER_CONTAINER) return fetcherFault(container) ?? waitingFault(container);
  return waitingFault(container) ?? restartFault(container);
}

/** The fetcher tries again by itself, so its end is final. What it says names no credentials. */
function fetcherFault({ state, lastState }: ContainerStatus): PodFault | undefined {
  const ended = state?.terminated ?? lastState?.terminated;
  if (ended?.exitCode === undefined || ended.exitCode === 0) return undefined;
  const said = ended.message?.trim() ?? '';
  return { reason: 'ArtifactFetchFailed', message: said === '' ? `it ended with exit code ${ended.exitCode}` : said };
}

function waitingFault({ state, lastState }: ContainerStatus): PodFault | undefined {
  const waiting = state?.waiting;
  const reason = waitingReasons.get(waiting?.reason ?? '');
  if (waiting === undefined || reason === undefined) return undefined;
  const exitCode = reason === 'CrashLoop' ? lastState?.terminated?.exitCode : undefined;
  const detail = exitCode === undefined ? waiting.message : `it ended with exit code ${exitCode}`;
  return { reason, message: detail === undefined ? `${waiting.reason}` : `${waiting.reason}: ${detail}` };
}

function restartFault({ restartCount }: ContainerStatus): PodFault | undefined {
  if (restartCount < RESTART_LIMIT) return undefined;
  return { reason: 'CrashLoop', message: `it was restarted ${restartCount} times` };
}
