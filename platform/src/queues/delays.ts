import type { Clock } from '../clock.ts';

/** Longer delays overflow the timers of Node. The timer then fires early and is set again. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls back with keys once their delay is over. */
export interface Delays {
  /** Of several delays of one key, the one that ends first counts. */
  add(key: string, delayMs: number): void;
  clear(): void;
}

export function createDelays(clock: Clock, onDue: (key: string) => void): Delays {
  const waiting = new Map<string, { readonly atMs: number; readonly timer: NodeJS.Timeout }>();

  function arm(key: string, atMs: number): void {
    const waitMs = Math.min(Math.max(0, Math.ceil(atMs - clock.monotonicMs())), LONGEST_TIMER_MS);
    waiting.set(key, { atMs, timer: setTimeout(fire, waitMs, key, atMs) });
  }

  function fire(key: string, atMs: number): void {
    if (clock.monotonicMs() < atMs) return arm(key, atMs);
    waiting.delete(key);
    onDue(key);
  }

  return {
    add(key, delayMs) {
      const atMs = clock.monotonicMs() + delayMs;
      const known = waiting.get(key);
      if (known !== undefined && known.atMs <= atMs) return;
      clearTimeout(known?.timer);
      arm(key, atMs);
    },
    clear() {
      for (const { timer } of waiting.values()) clearTimeout(timer);
      waiting.clear();
    },
  };
}
