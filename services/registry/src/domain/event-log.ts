/** The latest events of a feed, for subscribers that come back, and its live subscribers. */
export interface EventLog<Event extends { readonly version: number }> {
  /** Keeps the event and tells it to everybody. */
  append(event: Event): void;
  /** Forgets everything: what there is to resume from begins after `version`. */
  restart(version: number): void;
  /**
   * The events after `from`; undefined when they are no longer, or were never, known here.
   *
   * @param newest the version that the feed is at: whoever knows a later one has it from somebody who is ahead.
   */
  since(from: number, newest: number): readonly Event[] | undefined;
  /** @returns a function that ends the subscription. */
  subscribe(listener: (event: Event) => void): () => void;
}

/** @param capacity how many past events are kept. */
export function createEventLog<Event extends { readonly version: number }>(capacity: number): EventLog<Event> {
  const listeners = new Set<(event: Event) => void>();
  let recent: Event[] = [];
  /** Every event after this version is in `recent`. */
  let completeAfter = Number.POSITIVE_INFINITY;

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
    restart(version) {
      recent = [];
      completeAfter = version;
    },
    since(from, newest) {
      if (from < completeAfter || from > newest) return undefined;
      return recent.filter((event) => event.version > from);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
