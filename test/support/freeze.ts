import { readdir, readFile } from 'node:fs/promises';
import { waitUntil } from '@rollcall/local/wait.ts';

const TIMEOUT_MS = 10_000;

/**
 * Stops a process as SIGSTOP does, and waits until all of it stands still: only the thread that
 * gets the signal stops the others, and until it gets a turn on a busy machine they go on
 * answering.
 *
 * @throws when it does not stand still in time; it goes on then, for whoever asked has nothing to
 * thaw.
 */
export async function freeze(pid: number): Promise<void> {
  using stack = new DisposableStack();
  process.kill(pid, 'SIGSTOP');
  stack.defer(() => thaw(pid));
  await waitUntil(`process ${pid} stands still`, () => standsStill(pid), { timeoutMs: TIMEOUT_MS, intervalMs: 1 });
  stack.move();
}

/** Lets a frozen process go on. */
export function thaw(pid: number): void {
  process.kill(pid, 'SIGCONT');
}

async function standsStill(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const states = await Promise.all(threads.map((thread) => stateOf(`/proc/${pid}/task/${thread}/stat`)));
  return states.every((state) => state === 'T');
}

async function stateOf(stat: string): Promise<string | undefined> {
  // A thread may be over by now.
  const status = await readFile(stat, 'utf8').catch(() => '');
  return status.slice(status.lastIndexOf(')') + 1).trim()[0];
}
