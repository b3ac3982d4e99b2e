import type { Worker } from 'node:worker_threads';

/** Ends threads whose task takes too long. */
export interface TaskWatch {
  /** A thread is loaded for its first task. */
  loading(thread: Worker): void;
  /** It works on a task from now on. @param before what it had worked before; undefined: nothing. */
  working(thread: Worker, before: NodeJS.CpuUsage | undefined): void;
  /** The task is over. */
  stop(): void;
}

/** A busy machine may take so many times as long. */
const MOST_WAITS = 10;
/** Of loading a thread, which says nothing of its task. */
const START_LIMIT_MS = 60_000;

/**
 * Watches one task at a time, by the time that its thread works on it: others may keep the machine busy.
 *
 * @param limitMs for a task. @param giveUp is told once of a task that is beyond it.
 */
export function createTaskWatch(limitMs: number, giveUp: (thread: Worker, reason: string) => void): TaskWatch {
  let timer: NodeJS.Timeout | undefined;
  /** Counts tasks. */
  let task = 0;

  function begin(afterMs: number, look: () => void): void {
    task += 1;
    clearTimeout(timer);
    timer = setTimeout(look, afterMs);
  }

  return {
    loading: (thread) => begin(START_LIMIT_MS, () => giveUp(thread, 'its thread cannot be loaded')),
    working(thread, before) {
      const untilMs = performance.now() + MOST_WAITS * limitMs;
      begin(limitMs, () => void look());
      const watched = task;

      async function look(): Promise<void> {
        const leftMs = limitMs - (await workedMs(thread, before));
        // It may have been done meanwhile.
        if (task !== watched) return;
        if (leftMs > 0 && performance.now() < untilMs) timer = setTimeout(() => void look(), leftMs);
        else giveUp(thread, `it takes longer than ${limitMs / 1000} s`);
      }
    },
    stop() {
      task += 1;
      clearTimeout(timer);
    },
  };
}

/** So long a thread has worked, in milliseconds; for ever where it has ended. */
async function workedMs(thread: Worker, before: NodeJS.CpuUsage | undefined): Promise<number> {
  try {
    const { user, system } = await thread.cpuUsage(before);
    return (user + system) / 1000;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
