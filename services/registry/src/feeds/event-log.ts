/** The latest events of a feed, for subscribers that come back, and its live subscribers. */
export interface EventLog<Event extends { readonly version: number }> {
  /** Keeps the event and sends it to everybody. */
  append(event: Event): void;
  /** Everything up to `version` has been sent, whether or not there was an event of it. */
  reach(version: number): void;
  /** Forgets everything: what there is to resume from begins after `version`. */
  restart(version: number): void;
  /** The highest version of {@link reach}; 0 before the first. */
  readonly reached: number;
  /** Resolves once `version` is reached, or when the signal aborts. */
  whenReached(version: number, signal: AbortSignal): Promise<void>;
  /**
   * The events after `from`; undefined when they are no longer, or were never, known here: whoever
   * knows of a later version than is reached here has it from somebody who is ahead.
   */
  since(from: number): readonly Event[] | undefined;
  /** @returns a function that ends the subscription. */
  subscribe(listener: (event: Event) => void): () => void;
}

/** @param capacity how many past events are kept. */
export function createEventLog<Event extends { readonly version: number }>(capacity: number): EventLog<Event> {
  const listeners = new Set<(event: Event) => void>();
  const waiters = new Set<{ readonly version: number; readonly resolve: () => void }>();
  let recent: Event[] = [];
  /** Every event after this version is in `recent`. */
  let completeAfter = Number.POSITIVE_INFINITY;
  let reached = 0;

  return {
    append(event) {
      recent.push(event);
      if (recent.length > capacity * 2) {
        const dropped = recent.length - capacity;
        completeAfter = recent[dropped - 1]?.version ?? completeAfter;
        recent = recent.slice(dropped);
      }
      for (const listener of listeners) listener(event);
    },
    reach(version) {
      reached = Math.max(reached, version);
      for (const waiter of waiters) if (waiter.version <= reached) waiter.resolve();
    },
    restart(version) {
      recent = [];
      completeAfter = version;
    },
    get reached() {
      return reached;
    },
    async whenReached(version, signal) {
      if (version <= reached || signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiter = { version, resolve };
      const give = () => resolve();
      waiters.add(waiter);
      signal.addEventListener('abort', give);
      await promise;
      waiters.delete(waiter);
      signal.removeEventListener('abort', give);
    },
    since(from) {
      if (from < completeAfter || from > reached) return undefined;
      return recent.filter((event) => event.version > from);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
