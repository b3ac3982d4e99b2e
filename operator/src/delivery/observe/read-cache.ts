import type { Clock } from '@rollcall/platform/clock.ts';

/** What was read lately: many observations at once read once. */
export interface ReadCache<T> {
  /**
   * The answer of less than `maxAgeMs` ago, else what `ask` gives. An `ask` that fails is no
   * answer.
   */
  get(key: string, ask: () => Promise<T>): Promise<T>;
  /** What was read before may be true no longer. */
  forget(key: string): void;
}

export function createReadCache<T>(clock: Pick<Clock, 'monotonicMs'>, maxAgeMs: number): ReadCache<T> {
  /** The oldest first. */
  const answers = new Map<string, { readonly askedMs: number; readonly answer: Promise<T> }>();

  function dropOld(nowMs: number): void {
    for (const [key, { askedMs }] of answers) {
      if (nowMs - askedMs < maxAgeMs) break;
      answers.delete(key);
    }
  }

  return {
    get(key, ask) {
      const askedMs = clock.monotonicMs();
      dropOld(askedMs);
      const known = answers.get(key);
      if (known !== undefined) return known.answer;
      const answer = ask();
      const entry = { askedMs, answer };
      answers.set(key, entry);
      answer.catch(() => {
        if (answers.get(key) === entry) answers.delete(key);
      });
      return answer;
    },
    forget: (key) => void answers.delete(key),
  };
}
