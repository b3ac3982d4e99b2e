/** Something was not over in time. */
export class LateError extends Error {
  constructor(limitMs: number) {
    super(`Not over within ${limitMs / 1000} s`);
    this.name = 'LateError';
  }
}

/**
 * Waits for work that goes on for others when this one leaves.
 *
 * @throws the reason of the signal, once it is aborted; what the work throws.
 */
export async function unlessLeft<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const left = Promise.withResolvers<never>();
  const leave = () => left.reject(signal.reason);
  signal.addEventListener('abort', leave);
  // First, for what is aborted already: whatever comes of the work is heard by the race.
  if (signal.aborted) leave();
  try {
    return await Promise.race([left.promise, work]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/**
 * Does work whose signal is aborted after a time, with a LateError, or when another one is.
 * `AbortSignal.timeout` would keep its timer for the whole time, also of work that is over at once, and
 * `AbortSignal.any` costs many times as much.
 */
export async function withinTime<T>(
  limitMs: number,
  signal: AbortSignal,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const leave = () => limit.abort(signal.reason);
  const timer = setTimeout(() => limit.abort(new LateError(limitMs)), limitMs);
  signal.addEventListener('abort', leave);
  if (signal.aborted) leave();
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}
