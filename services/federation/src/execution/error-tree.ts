import type { AnswerPath } from './types.ts';

interface Branch {
  isError: boolean;
  readonly below: Map<string | number, Branch>;
}

/** The places of errors, to find those that explain why a value is missing. */
export class ErrorTree {
  readonly #root: Branch = { isError: false, below: new Map() };

  add(path: AnswerPath): void {
    let branch = this.#root;
    for (const key of path) {
      const next = branch.below.get(key) ?? { isError: false, below: new Map() };
      branch.below.set(key, next);
      branch = next;
    }
    branch.isError = true;
  }

  /** Whether there is an error at the path, around it or in it. */
  explains(path: AnswerPath): boolean {
    let branch = this.#root;
    for (const key of path) {
      if (branch.isError) return true;
      const next = branch.below.get(key);
      if (next === undefined) return false;
      branch = next;
    }
    return branch.isError || branch.below.size > 0;
  }
}
