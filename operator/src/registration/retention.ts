/** Since when each registration has been Expired, on the monotonic clock. */
export interface Retention {
  /**
   * A registration was seen Expired. Only the first call for a uid counts.
   *
   * @param ageMs how long it has been so: 0 when the change was watched; for what was Expired
   * before this process started, by the wall clock, which from then on may step without effect.
   */
  expiredSeen(uid: string, ageMs: number, nowMs: number): void;
  forget(uid: string): void;
  /** Monotonic ms; undefined when it was never seen Expired. */
  sinceMs(uid: string): number | undefined;
  size(): number;
}

export function createRetention(): Retention {
  const since = new Map<string, number>();
  return {
    expiredSeen(uid, ageMs, nowMs) {
      if (!since.has(uid)) since.set(uid, nowMs - Math.max(0, ageMs));
    },
    forget: (uid) => void since.delete(uid),
    sinceMs: (uid) => since.get(uid),
    size: () => since.size,
  };
}
