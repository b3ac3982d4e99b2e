import { readdir, readFile } from 'node:fs/promises';
import { isCode } from '@rollcall/local/file-lock.ts';
import type { ClusterNamespace } from '../../support/namespace.ts';

/** A pod, as far as tests read it. */
export interface PodView {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly status: {
    readonly phase: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly { readonly containerID?: string; readonly restartCount: number }[];
  };
}

/** The pods of a component of the chart, or of all. */
export async function listPods(namespace: ClusterNamespace, component?: string): Promise<PodView[]> {
  const selector = component === undefined ? '' : `--selector=app.kubernetes.io/component=${component}`;
  const answer = await namespace.kubectl('get', 'pods', '--output=json', ...(selector === '' ? [] : [selector]));
  const { items }: { items: PodView[] } = JSON.parse(answer);
  return items;
}

export function isReady({ status }: PodView): boolean {
  return status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}

export function restarts({ status }: PodView): number {
  return status.containerStatuses?.[0]?.restartCount ?? 0;
}

/**
 * Ends the process of a pod, which has one container, with SIGKILL from the node itself: neither
 * Kubernetes nor the process is asked. On a node of our own alone.
 */
export async function killProcess(pod: PodView): Promise<void> {
  process.kill(await processOf(pod), 'SIGKILL');
}

/** The process of a pod that has one container. On a node of our own alone. */
export async function processOf({ status, metadata }: PodView): Promise<number> {
  const container = status.containerStatuses?.[0]?.containerID?.replace(/^containerd:\/\//, '');
  if (container === undefined) throw new Error(`${metadata.name} has no container`);
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const [groups, state] = await Promise.all([readProcess(pid, 'cgroup'), readProcess(pid, 'status')]);
    // The first one of the container's own process namespace: the kernel ends the others with it.
    if (groups.includes(container) && /^NSpid:.*\t1$/m.test(state)) return Number(pid);
  }
  throw new Error(`${metadata.name} has no process`);
}

/** Empty when the process has ended. */
async function readProcess(pid: string, file: string): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/${file}`, 'utf8');
  } catch (err) {
    if (isCode(err, 'ENOENT') || isCode(err, 'ESRCH')) return '';
    throw err;
  }
}
