import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isCode, withLock } from '@rollcall/local/file-lock.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { MAX_NODES, type NodeAddresses, nodeAddresses } from './addresses.ts';
import { removeCgroups } from './cgroups.ts';
import { runCommand } from './command.ts';
import { waitForUnlink } from './network.ts';

/**
 * Where a node may be: its addresses, and the directory for all its files, which nobody else has.
 */
export interface Slot {
  readonly addresses: NodeAddresses;
  readonly directory: string;
}

const ROOT = join(tmpdir(), 'rollcall-nodes');
/** In a slot: the process that took it, and the first process of the node. */
const OWNER = 'owner';
const FIRST_PROCESS = 'first-process';
/** A slot without owner is about to get one, unless it is older. */
const OWNERLESS_MS = 60_000;

/**
 * Takes a free slot, after removing what nodes have left behind whose starter did not come to it.
 */
export async function claimSlot(): Promise<Slot> {
  // One at a time, lest somebody clears the slot that another one has just cleared and taken.
  return withLock(ROOT, {}, async () => {
    await clearAbandonedSlots();
    return takeSlot();
  });
}

/** Removes what nodes have left behind whose starter did not come to it. */
export function removeAbandoned(): Promise<void> {
  return withLock(ROOT, {}, clearAbandonedSlots);
}

async function takeSlot(): Promise<Slot> {
  for (let id = 0; id < MAX_NODES; id += 1) {
    const slot: Slot = { addresses: nodeAddresses(id), directory: join(ROOT, String(id)) };
    try {
      await mkdir(slot.directory);
    } catch (err) {
      if (isCode(err, 'EEXIST')) continue;
      throw err;
    }
    await writeFile(join(slot.directory, OWNER), (await identityOf(process.pid)) ?? '');
    return slot;
  }
  throw new Error(`There are ${MAX_NODES} nodes on this machine already; see ${ROOT}`);
}

/** Remembers the first process of the slot's node for whoever has to remove it. */
export async function recordFirstProcess({ directory }: Slot, pid: number): Promise<void> {
  await writeFile(join(directory, FIRST_PROCESS), (await identityOf(pid)) ?? '');
}

/**
 * Ends what runs in the slot and removes all of it. The namespaces end with their first process,
 * and with them every process, mount, link, route and packet filter in them, whatever state they
 * are in.
 */
export async function clearSlot({ addresses, directory }: Slot): Promise<void> {
  const first = await readFile(join(directory, FIRST_PROCESS), 'utf8').catch(() => '');
  if (await isRunning(first)) process.kill(Number.parseInt(first, 10), 'SIGKILL');
  const hasEnded = async (): Promise<boolean> => !(await isRunning(first));
  await waitUntil(`the processes of node ${addresses.id} have ended`, hasEnded, { timeoutMs: 60_000 });
  await waitForUnlink(addresses);
  await removeCgroups(addresses.cgroup);
  await runCommand(['rm', '-rf', '--one-file-system', directory]);
}

async function clearAbandonedSlots(): Promise<void> {
  for (const name of await readdir(ROOT)) {
    if (!/^\d+$/.test(name)) continue;
    const directory = join(ROOT, name);
    const owner = await readFile(join(directory, OWNER), 'utf8').catch(() => '');
    if (owner === '' ? await isNew(directory) : await isRunning(owner)) continue;
    await clearSlot({ addresses: nodeAddresses(Number(name)), directory });
  }
}

async function isNew(directory: string): Promise<boolean> {
  const age = await stat(directory).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  );
  return age < OWNERLESS_MS;
}

async function isRunning(identity: string): Promise<boolean> {
  return identity !== '' && (await identityOf(Number.parseInt(identity, 10))) === identity;
}

/**
 * A process id with the time of the process' start, for ids are used again; undefined when there is
 * none.
 */
async function identityOf(pid: number): Promise<string | undefined> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The second field is the command in parentheses, and may hold anything.
  const fields = status?.slice(status.lastIndexOf(')') + 2).split(' ');
  return fields === undefined || fields[0] === 'Z' ? undefined : `${pid} ${fields[19]}`;
}
