/** A source of time. Everything that decides by time uses one, so that tests can move it. */
export interface Clock {
  /** Wall-clock time, for what people and other machines read. It may jump. */
  now(): Date;
  /**
   * Milliseconds since an arbitrary start; never goes back and ignores wall-clock steps. For
   * measuring.
   */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
};
