import { unlessLeft } from '@rollcall/platform/within-time.ts';

/** Work that several wait for. */
interface Shared<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  users: number;
  isOver: boolean;
}

/** Who waits for work. */
interface Waiter {
  readonly key: string;
  readonly signal: AbortSignal;
  /** Where it is under way. */
  readonly onShared?: () => void;
}

/** Lets those who ask for the same at the same time share one answer. */
export interface SharedCalls<Result> {
  /**
   * Waits for work of that key that is under way, or begins it. It is broken off once nobody waits.
   *
   * @throws the reason of the signal, which is one's own.
   */
  run(waiter: Waiter, work: (signal: AbortSignal) => Promise<Result>): Promise<Result>;
  /** From now on nobody joins what is under way: it may have been answered before something changed. */
  separate(): void;
}

export function createSharedCalls<Result>(): SharedCalls<Result> {
  const underWay = new Map<string, Shared<Result>>();

  function begin(key: string, work: (signal: AbortSignal) => Promise<Result>): Shared<Result> {
    const controller = new AbortController();
    const begun: Shared<Result> = { result: work(controller.signal), controller, users: 0, isOver: false };
    const end = () => {
      begun.isOver = true;
      forget(key, begun);
    };
    begun.result.then(end, end);
    underWay.set(key, begun);
    return begun;
  }

  function forget(key: string, shared: Shared<Result>): void {
    if (underWay.get(key) === shared) underWay.delete(key);
  }

  return {
    async run({ key, signal, onShared }, work) {
      const known = underWay.get(key);
      if (known !== undefined) onShared?.();
      const shared = known ?? begin(key, work);
      shared.users += 1;
      try {
        return await unlessLeft(shared.result, signal);
      } finally {
        shared.users -= 1;
        if (shared.users === 0 && !shared.isOver) {
          forget(key, shared);
          shared.controller.abort(new Error('Nobody waits for the answer any more'));
        }
      }
    },
    separate: () => underWay.clear(),
  };
}
