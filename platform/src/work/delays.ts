import type { Clock } from '../clock.ts';
import { createDelayHeap } from './delay-heap.ts';

/**
 * Longer delays overflow the timers of Node; the timer then fires early, finds nothing due and is
 * set again.
 */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls back with keys once their delay is over, all by one timer. */
export interface Delays {
  /** Of several delays of one key, the one that ends first counts. */
  add(key: string, delayMs: number): void;
  clear(): void;
}

export function createDelays(clock: Clock, onDue: (key: string) => void): Delays {
  const heap = createDelayHeap();
  let timer: NodeJS.Timeout | undefined;
  let timerAtMs = 0;

  function arm(): void {
    const atMs = heap.nextAtMs();
    if (atMs === undefined || (timer !== undefined && timerAtMs <= atMs)) return;
    clearTimeout(timer);
    timerAtMs = atMs;
    const waitMs = Math.max(0, Math.ceil(atMs - clock.monotonicMs()));
    timer = setTimeout(fire, Math.min(waitMs, LONGEST_TIMER_MS));
  }

  function fire(): void {
    timer = undefined;
    for (const key of heap.popDue(clock.monotonicMs())) onDue(key);
    arm();
  }

  return {
    add(key, delayMs) {
      if (heap.push(key, clock.monotonicMs() + delayMs)) arm();
    },
    clear() {
      clearTimeout(timer);
      timer = undefined;
      heap.clear();
    },
  };
}
