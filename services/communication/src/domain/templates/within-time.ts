import { types } from 'node:util';
import { createContext, Script } from 'node:vm';

/** The work took longer than it may. */
export class TooLongError extends Error {
  constructor(limitMs: number) {
    super(`takes longer than ${limitMs} ms`);
    this.name = 'TooLongError';
  }
}

/** So many times the limit passes at most in one go, however busy the machine is. */
const SLOWEST = 10;
/** Of the time that passes, for one who has a processor alone; the rest is what measuring misses. */
const ALONE = 0.8;

const context: { work?: (() => unknown) | undefined } = createContext({});
const script = new Script('work()');

/**
 * Does work that is not ours to bound: libraries that read what strangers wrote. Whatever it is doing is cut off,
 * for `node:vm` ends all that it has called. What the work changes outside of itself may be left half done. Where
 * others had the processor meanwhile, it is done again from its beginning, with as much more time.
 *
 * @param limitMs of the processor's time, in milliseconds.
 * @throws TooLongError; whatever the work throws.
 */
export function withinTime<T>(limitMs: number, work: () => T): T {
  for (let ms = limitMs; ; ) {
    const before = process.threadCpuUsage();
    const done = doneWithin(ms, work);
    if (done !== 'cut-off') return done.value;
    const { user, system } = process.threadCpuUsage(before);
    const usedMs = (user + system) / 1000;
    if (usedMs >= ALONE * limitMs || ms >= SLOWEST * limitMs) throw new TooLongError(limitMs);
    ms = Math.ceil(Math.min(SLOWEST * limitMs, (limitMs * ms) / (ALONE * Math.max(1, usedMs))));
  }
}

function doneWithin<T>(ms: number, work: () => T): { readonly value: T } | 'cut-off' {
  let done: { readonly value: T } | undefined;
  const outer = context.work;
  context.work = () => {
    done = { value: work() };
  };
  try {
    script.runInContext(context, { timeout: ms });
  } catch (error) {
    if (isTimeout(error)) return 'cut-off';
    throw error;
  } finally {
    context.work = outer;
  }
  if (done === undefined) throw new Error('The work was not done');
  return done;
}

/** It is an error of the other context. */
function isTimeout(error: unknown): boolean {
  return types.isNativeError(error) && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
