import { existsSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { GUARDED_RANGES } from '../node/addresses.ts';
import { cgroupHierarchies } from '../node/cgroups.ts';
import { runCommand } from '../node/command.ts';

/** What a node could leave behind on the host, each as sorted lines. */
export interface HostState {
  /** Ids of the topmost ones in other process namespaces. */
  readonly processes: readonly string[];
  readonly mounts: readonly string[];
  readonly links: readonly string[];
  readonly addresses: readonly string[];
  /** But for the guard, which stays by design; see network.ts. */
  readonly routes: readonly string[];
  readonly cgroups: readonly string[];
  /** Rules of iptables. */
  readonly filters: readonly string[];
  readonly settings: readonly string[];
}

/** Kernel-wide settings that a kubelet or kube-proxy likes to change. */
const SETTINGS = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
  'net/ipv4/ip_forward',
  'net/netfilter/nf_conntrack_max',
];

/** @param packages of `findPackages`: where iptables is, when it is not installed. */
export async function readHostState(packages: string | undefined): Promise<HostState> {
  return {
    processes: await foreignProcesses(),
    mounts: lines(await readFile('/proc/self/mountinfo', 'utf8')),
    links: lines(await runCommand(['ip', '-brief', 'link'])).map((line) => line.split(/[ @]/)[0] ?? ''),
    addresses: lines(await runCommand(['ip', '-brief', 'address'])),
    routes: lines(await runCommand(['ip', 'route'])).filter((line) => !isGuard(line)),
    cgroups: await cgroups(),
    filters: await packetFilters(packages),
    settings: await Promise.all(SETTINGS.map(async (name) => `${name} ${await readSetting(name)}`)),
  };
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .sort();
}

function isGuard(route: string): boolean {
  return GUARDED_RANGES.some((range) => route.startsWith(`unreachable ${range}`));
}

/**
 * Ids of the processes that are in another process namespace than this one and whose parents are
 * not: the first processes of nodes, and what entered them from here. What those start comes and
 * goes.
 */
async function foreignProcesses(): Promise<string[]> {
  const own = await namespaceOf('self');
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const foreign: string[] = [];
  for (const pid of pids) {
    const namespace = await namespaceOf(pid);
    if (namespace === undefined || namespace === own) continue;
    // A parent that has just ended says nothing: what it leaves gets another one in its own
    // namespace.
    if ((await namespaceOf(await parentOf(pid))) === own) foreign.push(pid);
  }
  return foreign.sort();
}

/** Undefined for a process that has ended. */
function namespaceOf(pid: string): Promise<string | undefined> {
  return readlink(`/proc/${pid}/ns/pid`).catch(() => undefined);
}

async function parentOf(pid: string): Promise<string> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return /^PPid:\s*(\d+)/m.exec(status)?.[1] ?? '0';
}

async function cgroups(): Promise<string[]> {
  const groups = await Promise.all(
    (await cgroupHierarchies('all')).map(async (hierarchy) =>
      (await readdir(hierarchy)).filter((name) => /^kn\d+$/.test(name)).map((name) => `${hierarchy}/${name}`),
    ),
  );
  return groups.flat().sort();
}

/** The rules in the host's own network, without their counters. */
async function packetFilters(packages: string | undefined): Promise<string[]> {
  const overlay = packages === undefined ? '' : `mount -t overlay -o "lowerdir=${packages}/usr:/usr" usr /usr && `;
  const script = `${overlay}iptables-save && ip6tables-save`;
  const text = await runCommand(['unshare', '--mount', '--propagation=private', '--', 'bash', '-c', script]);
  return lines(text).flatMap((line) => (line.startsWith('#') ? [] : [line.replace(/\[\d+:\d+\]/, '')]));
}

async function readSetting(name: string): Promise<string> {
  const file = `/proc/sys/${name}`;
  return existsSync(file) ? (await readFile(file, 'utf8')).trim() : 'absent';
}
