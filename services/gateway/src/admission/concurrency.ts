/** How many requests each caller has under way. */
export interface Concurrency {
  /**
   * @returns a function that says that the request is over; undefined: the caller has as many as it
   * may have.
   */
  enter(key: string): (() => void) | undefined;
}

export function createConcurrency(most: number): Concurrency {
  const underWay = new Map<string, number>();
  return {
    enter(key) {
      const count = underWay.get(key) ?? 0;
      if (count >= most) return undefined;
      underWay.set(key, count + 1);
      return () => {
        const left = (underWay.get(key) ?? 0) - 1;
        if (left > 0) underWay.set(key, left);
        else underWay.delete(key);
      };
    },
  };
}
