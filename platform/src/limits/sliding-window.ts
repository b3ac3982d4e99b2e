/**
 * How many buckets a window counts in: the current one and the 60 before it. `redis-script.ts` has
 * the same number.
 */
export const BUCKETS = 61;

/**
 * @returns the length of a bucket in whole milliseconds, so that the shortest window which is
 * counted as exactly has 60 ms.
 */
export function bucketMsOf(windowMs: number): number {
  return Math.ceil(windowMs / (BUCKETS - 1));
}

interface Bucket {
  /** Time divided by the length of a bucket. */
  readonly number: number;
  readonly count: number;
}

/**
 * An exact sliding window, counted in buckets of a 60th of it.
 *
 * A request at `t` is counted in the bucket that `t` is in, and until that bucket has wholly left
 * the window: for the window and at most one bucket more. So at no time more than the limit is
 * allowed in any window, and one who waits for a window and a bucket always finds the whole limit
 * free.
 */
export class SlidingWindow {
  /** Those in which something was counted, the oldest first. */
  #buckets: Bucket[] = [];
  #total = 0;

  /** Requests that count as of the last {@link take}. */
  get total(): number {
    return this.#total;
  }

  /** The first bucket that is not empty; undefined when all are. */
  get oldest(): number | undefined {
    return this.#buckets[0]?.number;
  }

  /**
   * Counts a request, if fewer than `requests` are counted.
   *
   * @param current the number of the current bucket, never less than before.
   * @returns whether it was counted.
   */
  take(current: number, requests: number): boolean {
    for (
      let [first] = this.#buckets;
      first !== undefined && first.number <= current - BUCKETS;
      [first] = this.#buckets
    ) {
      this.#total -= first.count;
      this.#buckets.shift();
    }
    if (this.#total >= requests) return false;
    const newest = this.#buckets.at(-1);
    if (newest?.number === current) this.#buckets[this.#buckets.length - 1] = { ...newest, count: newest.count + 1 };
    else this.#buckets.push({ number: current, count: 1 });
    this.#total += 1;
    return true;
  }

  copy(): SlidingWindow {
    const copy = new SlidingWindow();
    copy.#buckets = [...this.#buckets];
    copy.#total = this.#total;
    return copy;
  }
}
