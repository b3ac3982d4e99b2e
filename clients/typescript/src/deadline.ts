/** A signal that aborts after a time, or with its parent, and can be called off. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Aborts now, with this reason. */
  abort(reason: unknown): void;
  /** Stops the timer; the parent still aborts the signal. */
  stopTimer(): void;
  /**
   * Stops the timer and lets go of the parent. Must be called, or a long-lived parent collects
   * listeners.
   */
  release(): void;
}

/**
 * `AbortSignal.any([AbortSignal.timeout(ms), parent])` with an end: handles live for months and
 * make a request every 30 seconds, so nothing may be left hanging on their signal.
 */
export function startDeadline(ms: number, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Error(`no answer within ${ms} ms`)), ms);
  const follow = () => controller.abort(parent?.reason);
  if (parent?.aborted === true) follow();
  else parent?.addEventListener('abort', follow);
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    stopTimer: () => clearTimeout(timer),
    release() {
      clearTimeout(timer);
      parent?.removeEventListener('abort', follow);
    },
  };
}
