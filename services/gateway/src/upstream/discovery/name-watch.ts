import type { Clock } from '@rollcall/platform/clock.ts';
import type { Addresses } from './addresses.ts';

/** Asks names where they lead, not more often than they may change, however many requests ask. */
export interface NameWatch {
  /**
   * As {@link Addresses.refresh}, of all names: until one has an answer that is not refused, or all
   * have one.
   *
   * @param hasOthers there are places without a name, so that nothing need be waited for.
   */
  refresh(names: readonly Addresses[], hasOthers: boolean): Promise<unknown> | undefined;
  /** Whether there is no answer yet that could be relied on. */
  isPending(name: Addresses): boolean;
  /** Whether names may lead elsewhere since it was last called. */
  takeNews(): boolean;
  /** The next {@link refresh} is to ask in any case. */
  askAgain(): void;
}

const PAUSE_MS = 100;

export function createNameWatch(clock: Clock): NameWatch {
  const pending = new Map<Addresses, Promise<void>>();
  let waiting: Promise<unknown> | undefined;
  let askAtMs = Number.NEGATIVE_INFINITY;
  let hasNews = false;

  /** @returns what has to be waited for before the name can be relied on. */
  function ask(name: Addresses): Promise<void> | undefined {
    const asked = name.refresh();
    if (asked === undefined) return undefined;
    const known = pending.get(name);
    if (known !== undefined) return known;
    const answered = asked.finally(() => {
      pending.delete(name);
      hasNews = true;
    });
    pending.set(name, answered);
    return answered;
  }

  function askAll(names: readonly Addresses[], hasOthers: boolean): void {
    hasNews = true;
    const asked = names.map((name) => ({ name, answer: ask(name) }));
    const isKnown = hasOthers || asked.some(({ name, answer }) => answer === undefined && !name.isRefused());
    const answers = asked.flatMap(({ name, answer }) => answer?.then(() => mustBeAllowed(name)) ?? []);
    const first = Promise.any(answers)
      .catch(() => undefined)
      .finally(() => {
        if (waiting === first) waiting = undefined;
      });
    waiting = isKnown || answers.length === 0 ? undefined : first;
  }

  return {
    refresh(names, hasOthers) {
      if (names.length === 0) return undefined;
      const nowMs = clock.monotonicMs();
      if (nowMs >= askAtMs) {
        askAtMs = nowMs + PAUSE_MS;
        askAll(names, hasOthers);
      }
      return waiting;
    },
    isPending: (name) => pending.has(name),
    takeNews() {
      const had = hasNews;
      hasNews = false;
      return had;
    },
    askAgain() {
      askAtMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/** Others may lead elsewhere: their answers are worth the wait. */
function mustBeAllowed(name: Addresses): void {
  if (name.isRefused()) throw new Error('No connection may be made there');
}
