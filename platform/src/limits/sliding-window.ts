/**
 * An exact sliding window, counted in buckets of a 60th of it.
 *
 * A request at `t` is counted in the bucket that `t` is in, and until that bucket has wholly left
 * the window: for the window and at most one bucket more. So at no time more than the limit is
 * allowed in any window, and one who waits for a window and a bucket always finds the whole limit
 * free. 61 buckets count at a time: the current one and the 60 before it.
 *
 * ```
 *   oldest                                newest
 *     │                                      │
 *  ┌──┴─┬────┬────┬────┬─ ─ ─ ─┬────┬────┬───┴┐
 *  │ 3  │ 0  │ 7  │ 1  │       │ 0  │ 2  │ 4  │   total = their sum
 *  └────┴────┴────┴────┴─ ─ ─ ─┴────┴────┴────┘
 *   leaves when the current bucket is oldest + 61
 * ```
 *
 * The total is kept, and what leaves is subtracted: a call reads the buckets that left since the
 * last one and no others. `redis-script.ts` does the same in Redis.
 */
export const BUCKETS = 61;

/**
 * @returns the length of a bucket in whole milliseconds, so that the shortest window which is
 * counted as exactly has 60 ms.
 */
export function bucketMsOf(windowMs: number): number {
  return Math.ceil(windowMs / (BUCKETS - 1));
}

/** Counts of many keys, a slot each. Bucket numbers are time divided by the length of a bucket. */
export interface Windows {
  /** {@link BUCKETS} for each slot, one for each bucket, at its number modulo {@link BUCKETS}. */
  readonly counts: Uint32Array;
  /** By slot: the first bucket that is not empty. Without a meaning where the total is 0. */
  readonly oldest: Float64Array;
  /** By slot: the last bucket that is not empty. Without a meaning where the total is 0. */
  readonly newest: Float64Array;
  /** By slot. */
  readonly total: Uint32Array;
}

/** @returns `slots` empty windows. */
export function createWindows(slots: number): Windows {
  return {
    counts: new Uint32Array(slots * BUCKETS),
    oldest: new Float64Array(slots),
    newest: new Float64Array(slots),
    total: new Uint32Array(slots),
  };
}

/**
 * Subtracts what has left the window. Time does not go back: `bucket` is never less than before.
 */
export function advance(windows: Windows, slot: number, bucket: number): void {
  const { counts, oldest, newest, total } = windows;
  let left = total[slot] ?? 0;
  if (left === 0) return;
  const base = slot * BUCKETS;
  const first = bucket - BUCKETS + 1;
  const last = newest[slot] ?? 0;
  let at = oldest[slot] ?? 0;
  for (; at < first && at <= last; at += 1) {
    const cell = base + (at % BUCKETS);
    left -= counts[cell] ?? 0;
    counts[cell] = 0;
  }
  // What is left lies further on; the search is paid for once by each bucket that passes.
  while (at < last && counts[base + (at % BUCKETS)] === 0) at += 1;
  total[slot] = left;
  oldest[slot] = at;
}

/**
 * Counts one request in the current bucket, if fewer than `requests` are counted. Call
 * {@link advance} before.
 */
export function count(
  windows: Windows,
  slot: number,
  { bucket, requests }: { bucket: number; requests: number },
): boolean {
  const { counts, oldest, newest, total } = windows;
  const before = total[slot] ?? 0;
  if (before >= requests) return false;
  if (before === 0) oldest[slot] = bucket;
  newest[slot] = bucket;
  total[slot] = before + 1;
  const cell = slot * BUCKETS + (bucket % BUCKETS);
  counts[cell] = (counts[cell] ?? 0) + 1;
  return true;
}

/** Makes the window of one slot that of another. */
export function copyWindow({ counts, oldest, newest, total }: Windows, from: number, to: number): void {
  counts.copyWithin(to * BUCKETS, from * BUCKETS, (from + 1) * BUCKETS);
  oldest[to] = oldest[from] ?? 0;
  newest[to] = newest[from] ?? 0;
  total[to] = total[from] ?? 0;
}
