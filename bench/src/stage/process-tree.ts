import { readdir, readFile } from 'node:fs/promises';

const TICKS_PER_SECOND = 100;

/** A process with all that it has started; of Linux. */
export interface ProcessTree {
  /** CPU time, user and system, also of children that have ended. Milliseconds, to the nearest ten. */
  readonly cpuMs: number;
  /** Resident, in MiB. Pages that several share count for each. */
  readonly rssMiB: number;
  /** The part of that which children have. */
  readonly childrenMiB: number;
}

export async function readProcessTree(pid: number): Promise<ProcessTree> {
  const own = await readProcess(pid);
  const children = await Promise.all((await childrenOf(pid)).map(readLiving));
  const cpuMs = children.reduce((sum, child) => sum + child.cpuMs, own.cpuMs);
  const childrenMiB = children.reduce((sum, { rssMiB }) => sum + rssMiB, 0);
  return { cpuMs, rssMiB: own.rssMiB + childrenMiB, childrenMiB };
}

/** One that has ended meanwhile is nothing: what it used is its parent's. */
function readLiving(pid: number): Promise<ProcessTree> {
  return readProcessTree(pid).catch(() => ({ cpuMs: 0, rssMiB: 0, childrenMiB: 0 }));
}

/**
 * proc(5): user and system time are the 14th and 15th fields, those of ended children the next two,
 * counted behind the name in parentheses.
 */
async function readProcess(pid: number): Promise<Pick<ProcessTree, 'cpuMs' | 'rssMiB'>> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const rssKiB = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  return { cpuMs: (ticks * 1000) / TICKS_PER_SECOND, rssMiB: rssKiB / 1024 };
}

async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}
