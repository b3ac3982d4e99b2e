import type { Clock } from '../clock.ts';
import { createDelays } from './delays.ts';

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** Delay of a key's first rate-limited return; it doubles with every further one. */
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** Whether a key that is about to wait is handed out before others; none is by default. */
  readonly isUrgent?: ((key: string) => boolean) | undefined;
  readonly metrics?: WorkQueueMetrics;
}

/**
 * One of so many keys is one that is not urgent where both kinds wait: what is urgent cannot hold
 * up the others for ever.
 */
const OTHERS_SHARE = 8;

/** Metrics of a queue. */
interface WorkQueueMetrics {
  depth(size: number): void;
  added(): void;
  /** A key was handed out after so long in the queue. */
  started(queuedMs: number): void;
  /** A key was worked on for so long. */
  finished(workedMs: number): void;
  retried(): void;
}

/**
 * A queue of keys with the semantics of client-go's `workqueue`: a key waits in it once, however
 * often it is added; it is handed to one worker at a time; added while it is worked on, it comes
 * back once when that is done.
 */
export interface WorkQueue {
  add(key: string): void;
  /** Adds after a delay. Of several delays of one key, the one that ends first counts. */
  addAfter(key: string, delayMs: number): void;
  /** Adds after the key's own back-off, which grows with each call until {@link forget}. */
  addRateLimited(key: string): void;
  forget(key: string): void;
  /**
   * Resolves with the next key, or with undefined once the queue is shut down and empty. Each key
   * needs a {@link done}.
   */
  next(): Promise<string | undefined>;
  done(key: string): void;
  /** How many keys wait to be worked on now; delayed ones do not count. */
  depth(): number;
  /** For how long each key that is being worked on has been. */
  unfinishedMs(): number[];
  /**
   * Accepts nothing more, drops what is delayed or waits, and resolves when what is being worked on
   * is done.
   */
  shutDown(): Promise<void>;
}

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { clock, metrics } = options;
  const queue = createTwoLanes();
  const dirty = new Set<string>();
  const processing = new Map<string, number>();
  const failures = new Map<string, number>();
  const delays = createDelays(clock, add);
  const waiters: ((key: string | undefined) => void)[] = [];
  const drained = Promise.withResolvers<void>();
  let shuttingDown = false;

  function add(key: string): void {
    if (shuttingDown || dirty.has(key)) return;
    metrics?.added();
    dirty.add(key);
    if (!processing.has(key)) enqueue(key);
  }

  function enqueue(key: string): void {
    queue.push({ key, addedAtMs: clock.monotonicMs() }, options.isUrgent?.(key) === true);
    metrics?.depth(queue.size());
    const waiter = waiters.shift();
    if (waiter !== undefined) waiter(take());
  }

  function take(): string | undefined {
    const entry = queue.shift();
    if (entry === undefined) return undefined;
    const nowMs = clock.monotonicMs();
    dirty.delete(entry.key);
    processing.set(entry.key, nowMs);
    metrics?.depth(queue.size());
    metrics?.started(nowMs - entry.addedAtMs);
    return entry.key;
  }

  function addAfter(key: string, delayMs: number): void {
    if (shuttingDown) return;
    if (delayMs <= 0) add(key);
    else delays.add(key, delayMs);
  }

  return {
    add,
    addAfter,
    addRateLimited(key) {
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      metrics?.retried();
      addAfter(key, Math.min(options.maxDelayMs, options.baseDelayMs * 2 ** Math.min(count, 40)));
    },
    forget: (key) => void failures.delete(key),
    next() {
      const key = take();
      if (key !== undefined || shuttingDown) return Promise.resolve(key);
      return new Promise((resolve) => void waiters.push(resolve));
    },
    done(key) {
      const startedAtMs = processing.get(key);
      if (startedAtMs === undefined) return;
      processing.delete(key);
      metrics?.finished(clock.monotonicMs() - startedAtMs);
      if (dirty.has(key)) enqueue(key);
      if (shuttingDown && processing.size === 0) drained.resolve();
    },
    depth: () => queue.size(),
    unfinishedMs: () => [...processing.values()].map((startedAtMs) => clock.monotonicMs() - startedAtMs),
    shutDown() {
      shuttingDown = true;
      delays.clear();
      queue.clear();
      dirty.clear();
      metrics?.depth(0);
      for (const waiter of waiters.splice(0)) waiter(undefined);
      if (processing.size === 0) drained.resolve();
      return drained.promise;
    },
  };
}

interface Entry {
  readonly key: string;
  readonly addedAtMs: number;
}

/** What is urgent before the rest, in each first in, first out. */
function createTwoLanes() {
  const urgent = createFifo();
  const others = createFifo();
  let urgentInARow = 0;
  return {
    push: (entry: Entry, isUrgent: boolean): void => (isUrgent ? urgent : others).push(entry),
    shift(): Entry | undefined {
      const isOthersTurn = urgent.size() === 0 || (others.size() > 0 && urgentInARow >= OTHERS_SHARE - 1);
      urgentInARow = isOthersTurn ? 0 : urgentInARow + 1;
      return (isOthersTurn ? others : urgent).shift();
    },
    size: (): number => urgent.size() + others.size(),
    clear(): void {
      urgent.clear();
      others.clear();
    },
  };
}

/** First in, first out, at a cost that does not depend on how many are in it. */
function createFifo() {
  let entries: Entry[] = [];
  let head = 0;
  return {
    push: (entry: Entry): void => void entries.push(entry),
    shift(): Entry | undefined {
      const entry = entries[head];
      if (entry === undefined) return undefined;
      head += 1;
      if (head * 2 >= entries.length) {
        entries = entries.slice(head);
        head = 0;
      }
      return entry;
    },
    size: (): number => entries.length - head,
    clear(): void {
      entries = [];
      head = 0;
    },
  };
}
