import { existsSync } from 'node:fs';
import { waitUntil } from '@rollcall/local/wait.ts';
import { GUARDED_RANGES, type NodeAddresses } from './addresses.ts';
import { runCommand } from './command.ts';

/** Why the ranges of addresses cannot be used here, or undefined when they can. */
export async function networkProblem(): Promise<string | undefined> {
  for (const range of GUARDED_RANGES) {
    const routes: Route[] = JSON.parse((await runCommand(['ip', '-json', 'route', 'show', 'root', range])) || '[]');
    const foreign = routes.find(({ type, dev }) => type !== 'unreachable' && !/^vkn\d+$/.test(dev ?? ''));
    if (foreign !== undefined) return `${range} is needed for the node, but ${foreign.dst} is in use (${foreign.dev})`;
  }
  return undefined;
}

/** Of `ip -json route`; those of an ordinary type have none. */
interface Route {
  readonly dst: string;
  readonly type?: string;
  readonly dev?: string;
}

/**
 * Makes the nodes' ranges unreachable from the host, but for the more specific routes of nodes that
 * are up. To be called before anything else, and never undone: whatever still holds an address of a
 * node that has gone must not send to the default route.
 */
export async function installGuard(): Promise<void> {
  for (const range of GUARDED_RANGES) await runCommand(['ip', 'route', 'replace', 'unreachable', range]);
}

/**
 * Links the host and the node's network namespace, and routes the node's Services and pods to it;
 * all of it ends with the namespace.
 */
export async function linkNode(addresses: NodeAddresses, pid: number): Promise<void> {
  const { link, host, node } = addresses;
  await runCommand(['ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)]);
  await runCommand(['ip', 'address', 'add', `${host}/30`, 'dev', link]);
  await runCommand(['ip', 'link', 'set', link, 'up']);
  for (const range of [addresses.podRange, addresses.serviceRange]) {
    await runCommand(['ip', 'route', 'add', range, 'via', node, 'dev', link]);
  }
}

/** Waits until the link has gone with its namespace, and its routes and addresses with it. */
export async function waitForUnlink({ link }: NodeAddresses): Promise<void> {
  const isGone = async (): Promise<boolean> => !existsSync(`/sys/class/net/${link}`);
  // The kernel takes its time when connections in it were open, half a minute on a busy machine.
  await waitUntil(`the link ${link} is gone`, isGone, { timeoutMs: 180_000 });
}
