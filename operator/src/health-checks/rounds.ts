import type { Clock } from '@rollcall/platform/clock.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { createDelays } from '@rollcall/platform/queues/delays.ts';

/** Where all of them hang for 2 seconds, 32 are made in a second. */
const AT_ONCE = 64;
/** Services of one subject that hang leave places for others. */
const AT_ONCE_PER_OWNER = 16;
/** Intervals are shorter by up to so much, so that what began together does not stay together. */
const JITTER = 0.1;

/** So often it is asked whether what is under way for another item of the key has ended. */
const BUSY_MS = 100;

/** What is done again and again. */
interface Recurring {
  readonly intervalMs: number;
  readonly owner: string;
}

/** Does something for each key every interval, a bounded number at a time, and never twice at once. */
export interface Rounds<Item extends Recurring> {
  get(key: string): Item | undefined;
  /** Begins within one interval. What is under way for another item of the key ends for nobody. */
  set(key: string, item: Item): void;
  delete(key: string): void;
  /** Resolves when nothing is under way. */
  stop(): Promise<void>;
}

interface Entry<Item> {
  readonly item: Item;
  /** Monotonic; undefined while it is done or waits for its turn. */
  dueAtMs: number | undefined;
}

/** @param work how late it begins is told it. Must not throw. */
export function createRounds<Item extends Recurring>(
  clock: Clock,
  work: (key: string, item: Item, lateMs: number) => Promise<void>,
): Rounds<Item> {
  const entries = new Map<string, Entry<Item>>();
  const running = new Set<Promise<void>>();
  /** Keys of which something is under way or waits for its turn. */
  const busy = new Set<string>();
  const limiter = createConcurrencyLimiter({ most: AT_ONCE, mostPerKey: AT_ONCE_PER_OWNER });
  const delays = createDelays(clock, fire);
  let isStopped = false;

  function schedule(key: string, entry: Entry<Item>, delayMs: number): void {
    entry.dueAtMs = clock.monotonicMs() + delayMs;
    delays.add(key, delayMs);
  }

  /** The timer may be that of an item whose place another one has taken. */
  function fire(key: string): void {
    const entry = entries.get(key);
    if (entry?.dueAtMs === undefined) return;
    const earlyMs = entry.dueAtMs - clock.monotonicMs();
    if (earlyMs > 0) return delays.add(key, earlyMs);
    if (busy.has(key)) return delays.add(key, BUSY_MS);
    busy.add(key);
    const { dueAtMs, item } = entry;
    entry.dueAtMs = undefined;
    const done = limiter
      .run(item.owner, () => turn(key, entry, dueAtMs))
      .finally(() => {
        running.delete(done);
        busy.delete(key);
      });
    running.add(done);
  }

  async function turn(key: string, entry: Entry<Item>, dueAtMs: number): Promise<void> {
    const isOver = () => isStopped || entries.get(key) !== entry;
    if (isOver()) return;
    const beganMs = clock.monotonicMs();
    await work(key, entry.item, beganMs - dueAtMs);
    if (isOver()) return;
    const intervalMs = entry.item.intervalMs * (1 - JITTER * Math.random());
    schedule(key, entry, Math.max(0, beganMs + intervalMs - clock.monotonicMs()));
  }

  return {
    get: (key) => entries.get(key)?.item,
    set(key, item) {
      if (isStopped) return;
      const entry = { item, dueAtMs: undefined };
      entries.set(key, entry);
      schedule(key, entry, Math.random() * item.intervalMs);
    },
    delete: (key) => void entries.delete(key),
    async stop() {
      isStopped = true;
      delays.clear();
      await Promise.all(running);
    },
  };
}
