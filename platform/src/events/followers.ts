/** Somebody who waits for events of a subject. */
interface Follower {
  /** To be called before what is there is read: what comes after that is not missed. */
  listen(): void;
  /** Resolves once there may be more, or nobody follows any longer. */
  heard(): Promise<void>;
  leave(): void;
}

/** Who waits for events in this replica. No I/O. */
export interface Followers {
  follow(subject: string): Follower;
  readonly subjects: readonly string[];
  wake(subjects: Iterable<string>): void;
}

interface Waiting {
  awake: PromiseWithResolvers<void>;
}

export function createFollowers(): Followers {
  const bySubject = new Map<string, Set<Waiting>>();

  function forget(subject: string, waiting: Waiting): void {
    const others = bySubject.get(subject);
    others?.delete(waiting);
    if (others?.size === 0) bySubject.delete(subject);
  }

  return {
    follow(subject) {
      const waiting: Waiting = { awake: Promise.withResolvers() };
      bySubject.set(subject, (bySubject.get(subject) ?? new Set()).add(waiting));
      return {
        listen() {
          waiting.awake = Promise.withResolvers();
        },
        heard: () => waiting.awake.promise,
        leave() {
          forget(subject, waiting);
          waiting.awake.resolve();
        },
      };
    },
    get subjects() {
      return [...bySubject.keys()];
    },
    wake(subjects) {
      for (const subject of subjects) for (const { awake } of bySubject.get(subject) ?? []) awake.resolve();
    },
  };
}
