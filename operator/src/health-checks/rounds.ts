import type { Clock } from '@rollcall/platform/clock.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { createWorkQueue } from '@rollcall/platform/queues/workqueue.ts';

/** Where all of them hang for 2 seconds, 32 are made in a second. */
const AT_ONCE = 64;
/** Services of one subject that hang leave places for others. */
const AT_ONCE_PER_OWNER = 16;
/** Intervals are shorter by up to so much, so that what began together does not stay together. */
const JITTER = 0.1;
/** Nothing is tried again before its interval is over. */
const NO_RETRY = { baseDelayMs: 0, maxDelayMs: 0 };

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
  /** Monotonic. */
  dueAtMs: number;
}

/** @param work how late it begins is told it. Must not throw. */
export function createRounds<Item extends Recurring>(
  clock: Clock,
  work: (key: string, item: Item, lateMs: number) => Promise<void>,
): Rounds<Item> {
  const entries = new Map<string, Entry<Item>>();
  const limiter = createConcurrencyLimiter({ most: AT_ONCE, mostPerKey: AT_ONCE_PER_OWNER });
  const queue = createWorkQueue({ clock, ...NO_RETRY });
  let isStopped = false;

  function schedule(key: string, entry: Entry<Item>, delayMs: number): void {
    entry.dueAtMs = clock.monotonicMs() + delayMs;
    queue.addAfter(key, delayMs);
  }

  async function turn(key: string, entry: Entry<Item>): Promise<void> {
    const isOver = () => isStopped || entries.get(key) !== entry;
    if (isOver()) return;
    const beganMs = clock.monotonicMs();
    await work(key, entry.item, beganMs - entry.dueAtMs);
    if (isOver()) return;
    const intervalMs = entry.item.intervalMs * (1 - JITTER * Math.random());
    schedule(key, entry, Math.max(0, beganMs + intervalMs - clock.monotonicMs()));
  }

  /** What is due may be that of an item whose place another one has taken. */
  async function take(key: string): Promise<void> {
    const entry = entries.get(key);
    if (entry === undefined) return;
    const earlyMs = entry.dueAtMs - clock.monotonicMs();
    if (earlyMs > 0) queue.addAfter(key, earlyMs);
    else await limiter.run(entry.item.owner, () => turn(key, entry));
  }

  async function hand(): Promise<void> {
    for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
      const taken = key;
      void take(taken).finally(() => queue.done(taken));
    }
  }

  void hand();
  return {
    get: (key) => entries.get(key)?.item,
    set(key, item) {
      if (isStopped) return;
      const entry = { item, dueAtMs: 0 };
      entries.set(key, entry);
      schedule(key, entry, Math.random() * item.intervalMs);
    },
    delete: (key) => void entries.delete(key),
    async stop() {
      isStopped = true;
      await queue.shutDown();
    },
  };
}
