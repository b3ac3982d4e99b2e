interface Reads<T> {
  /** Under way. */
  readonly current: Promise<T>;
  /** Begins when that has ended. */
  next?: Promise<T>;
}

/**
 * Reads that many ask for at once. Who asks while one of the same key is under way shares the next, with all who do so too: an answer
 * is never older than the question, and however many ask, reads of a key are made one after the other.
 */
export function createSharedReads<T>(read: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const reads = new Map<string, Reads<T>>();

  function start(key: string): Promise<T> {
    const entry: Reads<T> = { current: read(key) };
    reads.set(key, entry);
    const end = () => {
      if (entry.next === undefined) reads.delete(key);
    };
    entry.current.then(end, end);
    return entry.current;
  }

  return (key) => {
    const entry = reads.get(key);
    if (entry === undefined) return start(key);
    const startNext = () => start(key);
    entry.next ??= entry.current.then(startNext, startNext);
    return entry.next;
  };
}
