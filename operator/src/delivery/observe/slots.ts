/** Lets so many work at once; the others wait in the order in which they came. */
export interface Slots {
  /**
   * Resolves with what gives the slot back, once there is a free one; with undefined when the
   * signal aborts before.
   */
  take(signal: AbortSignal): Promise<(() => void) | undefined>;
}

export function createSlots(count: number): Slots {
  const waiting = new Set<() => void>();
  let free = count;

  function giveBack(): void {
    free += 1;
    for (const next of waiting) {
      waiting.delete(next);
      next();
      break;
    }
  }

  function occupy(): () => void {
    free -= 1;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      giveBack();
    };
  }

  return {
    take(signal) {
      if (signal.aborted) return Promise.resolve(undefined);
      if (free > 0) return Promise.resolve(occupy());
      return new Promise((resolve) => {
        const onFree = () => {
          signal.removeEventListener('abort', onAbort);
          resolve(occupy());
        };
        const onAbort = () => {
          waiting.delete(onFree);
          resolve(undefined);
        };
        waiting.add(onFree);
        signal.addEventListener('abort', onAbort, { once: true });
      });
    },
  };
}
