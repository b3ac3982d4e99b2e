export interface ConcurrencyLimiterOptions {
  /** How much may be under way at a time; without a bound by default. */
  readonly most?: number;
  /** How much of one key may be under way at a time; without a bound by default. */
  readonly mostPerKey?: number;
  /** How much may be under way or wait; without a bound by default. */
  readonly capacity?: number;
  /**
   * How much of one key may wait, so that the rest is for others; without a bound by
   * default.
   */
  readonly waitingPerKey?: number;
  /**
   * Who has waited longer may have given up, and would not expect any more that something is done.
   * For ever by default.
   */
  readonly maxWaitMs?: number;
  /** What is thrown where too much waits, or the turn has not come in time. */
  readonly refuse?: (reason: LimitReason) => Error;
}

type LimitReason = 'full' | 'late';

/**
 * Bounds how much is under way at a time, of all and of each key, such as a service or a caller.
 */
export interface ConcurrencyLimiter {
  /** @returns what says that it is over; undefined where as much as may be is under way. */
  tryEnter(key: string): (() => void) | undefined;
  /**
   * Does the work once it may. Keys alternate: one with much work does not hold up the others.
   *
   * @param signal of who waits for it: aborted, it leaves the line.
   * @throws what `refuse` makes, or the reason of the signal: the work is not begun then.
   */
  run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

type Begin = (leave: () => void) => void;

interface KeyState {
  running: number;
  /** First in, first out. */
  readonly waiting: Set<Begin>;
}

export function createConcurrencyLimiter(options: ConcurrencyLimiterOptions): ConcurrencyLimiter {
  const { most = Infinity, mostPerKey = Infinity, capacity = Infinity, waitingPerKey = Infinity } = options;
  const { refuse = (reason: LimitReason) => new Error(`Not begun: ${reason}`) } = options;
  const keys = new Map<string, KeyState>();
  /**
   * Keys of which something waits that `most` alone holds up. The one that had its turn last comes
   * last.
   */
  const ready = new Set<string>();
  let running = 0;
  let waiting = 0;

  function stateOf(key: string): KeyState {
    const known = keys.get(key);
    if (known !== undefined) return known;
    const state = { running: 0, waiting: new Set<Begin>() };
    keys.set(key, state);
    return state;
  }

  function enter(key: string, state: KeyState): () => void {
    running += 1;
    state.running += 1;
    return () => {
      running -= 1;
      state.running -= 1;
      if (state.waiting.size > 0) ready.add(key);
      else if (state.running === 0) keys.delete(key);
      beginNext();
    };
  }

  function beginNext(): void {
    for (const key of ready) {
      if (running >= most) return;
      const state = stateOf(key);
      const [begin] = state.waiting;
      ready.delete(key);
      if (begin === undefined) continue;
      state.waiting.delete(begin);
      waiting -= 1;
      const leave = enter(key, state);
      if (state.waiting.size > 0 && state.running < mostPerKey) ready.add(key);
      begin(leave);
    }
  }

  function tryEnter(key: string): (() => void) | undefined {
    const isFull = running >= most || (keys.get(key)?.running ?? 0) >= mostPerKey;
    return isFull ? undefined : enter(key, stateOf(key));
  }

  async function turn(key: string, signal: AbortSignal | undefined): Promise<() => void> {
    const state = stateOf(key);
    if (running + waiting >= capacity || state.waiting.size >= waitingPerKey) {
      if (state.running + state.waiting.size === 0) keys.delete(key);
      throw refuse('full');
    }
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    state.waiting.add(resolve);
    waiting += 1;
    if (state.running < mostPerKey) ready.add(key);
    const timer = options.maxWaitMs === undefined ? undefined : setTimeout(giveUp, options.maxWaitMs);
    signal?.addEventListener('abort', giveUp);
    function giveUp(): void {
      if (!state.waiting.delete(resolve)) return;
      waiting -= 1;
      if (state.waiting.size === 0) ready.delete(key);
      if (state.running + state.waiting.size === 0) keys.delete(key);
      reject(signal?.aborted === true ? signal.reason : refuse('late'));
    }
    return promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    });
  }

  return {
    tryEnter,
    async run(key, work, signal) {
      signal?.throwIfAborted();
      const leave = tryEnter(key) ?? (await turn(key, signal));
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
