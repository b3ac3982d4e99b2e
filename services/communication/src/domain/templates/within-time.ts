import { types } from 'node:util';
import { createContext, Script } from 'node:vm';

/** The work took longer than it may. */
export class TooLongError extends Error {
  constructor(limitMs: number) {
    super(`takes longer than ${limitMs} ms`);
    this.name = 'TooLongError';
  }
}

const context: { work?: (() => unknown) | undefined } = createContext({});
const script = new Script('work()');

/**
 * Does work that is not ours to bound: libraries that read what strangers wrote. Whatever it is doing is cut off at the
 * limit, for `node:vm` ends all that it has called. What the work changes outside of itself may be left half done.
 *
 * @throws TooLongError; whatever the work throws.
 */
export function withinTime<T>(limitMs: number, work: () => T): T {
  let done: { readonly value: T } | undefined;
  const outer = context.work;
  context.work = () => {
    done = { value: work() };
  };
  try {
    script.runInContext(context, { timeout: limitMs });
  } catch (error) {
    throw isTimeout(error) ? new TooLongError(limitMs) : error;
  } finally {
    context.work = outer;
  }
  if (done === undefined) throw new Error('The work was not done');
  return done.value;
}

/** It is an error of the other context. */
function isTimeout(error: unknown): boolean {
  return types.isNativeError(error) && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
