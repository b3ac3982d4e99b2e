import { existsSync } from 'node:fs';
import { hasDebianTools } from '@rollcall/local/debian-packages.ts';
import { findExecutable } from '@rollcall/local/executables.ts';
import { cgroupHierarchies } from './cgroups.ts';
import { networkProblem } from './network.ts';
import { HOST_PROGRAMS, hasPackages } from './packages.ts';

/** Why there can be no node on this machine, in a sentence, or undefined when there can. */
export async function nodeProblem(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'a node of its own needs Linux';
  if (process.getuid?.() !== 0) return 'a node of its own needs root';
  for (const program of HOST_PROGRAMS) {
    if ((await findExecutable(program)) === undefined) return `a node of its own needs ${program} on the PATH`;
  }
  if ((await cgroupHierarchies('v1')).length === 0) return 'a node of its own needs cgroups of version 1';
  if (!existsSync('/proc/sys/net/bridge')) return 'a node of its own needs the kernel module br_netfilter';
  if (!(await hasPackages()) && !(await hasDebianTools())) {
    return 'a node of its own needs containerd, runc, the CNI plugins in /usr/lib/cni, iptables and nftables, or apt-get to fetch them';
  }
  return networkProblem();
}
