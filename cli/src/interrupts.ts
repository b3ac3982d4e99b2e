/** Ctrl-C while something that goes on without us is waited for. */
export interface Interrupts extends Disposable {
  /** Aborts at the second SIGINT, or at SIGTERM; the reason is an {@link Interruption}. */
  readonly signal: AbortSignal;
}

export class Interruption extends Error {
  override readonly name = 'Interruption';
  /** What the process was sent. */
  readonly by: NodeJS.Signals;

  constructor(by: NodeJS.Signals) {
    super(`interrupted by ${by}`);
    this.by = by;
  }
}

/**
 * Catches the signals until disposed of.
 *
 * @param onFirst called at the first SIGINT, which ends nothing.
 */
export function catchInterrupts(onFirst: () => void): Interrupts {
  const controller = new AbortController();
  let wasInterrupted = false;
  const onInterrupt = () => {
    if (wasInterrupted) controller.abort(new Interruption('SIGINT'));
    else onFirst();
    wasInterrupted = true;
  };
  const onTerminate = () => controller.abort(new Interruption('SIGTERM'));
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onTerminate);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      process.off('SIGINT', onInterrupt);
      process.off('SIGTERM', onTerminate);
    },
  };
}
