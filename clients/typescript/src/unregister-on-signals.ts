import type { Registration } from './registration.ts';

/**
 * Unregisters when the process is asked to end. Where nothing else listens for the signal the
 * process then ends by it, as it would have without this; otherwise ending is left to the other
 * listener. Node only.
 *
 * @param signals default SIGTERM and SIGINT.
 * @returns a function that undoes this.
 * @public
 */
export function unregisterOnSignals(
  registration: Registration,
  signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'],
): () => void {
  const undo = () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const endBy = async (signal: NodeJS.Signals) => {
    await registration[Symbol.asyncDispose]();
    undo();
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  const onSignal = (signal: NodeJS.Signals) => void endBy(signal);
  for (const signal of signals) process.on(signal, onSignal);
  return undo;
}
