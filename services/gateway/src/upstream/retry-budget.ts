/**
 * How many requests may be sent again: a share of all of them, so that retries never multiply the
 * load on a target in trouble.
 */
export interface RetryBudget {
  /** A request begins. */
  deposit(): void;
  /** @returns whether one may be sent again now. */
  tryWithdraw(): boolean;
}

/**
 * @param share of the requests that may be sent again, 0 to 1.
 * @param reserve so many may be sent again whatever came before; as many can be saved up beyond it.
 */
export function createRetryBudget(share: number, reserve: number): RetryBudget {
  let balance = reserve;
  return {
    deposit() {
      balance = Math.min(balance + share, reserve * 2);
    },
    tryWithdraw() {
      if (balance < 1) return false;
      balance -= 1;
      return true;
    },
  };
}
