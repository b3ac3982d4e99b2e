/** Runs work for the same key one after the other, for different keys side by side. */
export interface KeyedMutex {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

export function createKeyedMutex(): KeyedMutex {
  const tails = new Map<string, Promise<unknown>>();
  return {
    async run(key, work) {
      const previous = tails.get(key) ?? Promise.resolve();
      const current = previous.then(work, work);
      tails.set(key, current);
      try {
        return await current;
      } finally {
        if (tails.get(key) === current) tails.delete(key);
      }
    },
  };
}
