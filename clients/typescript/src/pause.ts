export interface PauseOptions {
  /** Ends the pause early. */
  readonly signal?: AbortSignal | undefined;
  /** Do not keep a Node process alive for this pause alone. */
  readonly unref?: boolean | undefined;
}

/** Waits; returns early when the signal aborts. Never rejects. Works in Node and in browsers. */
export function pause(ms: number, { signal, unref }: PauseOptions = {}): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (unref === true) unrefTimer(timer);
  });
}

/** Browsers' timers are numbers and keep nothing alive. */
function unrefTimer(timer: unknown): void {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function')
    timer.unref();
}
