/** How much may be kept of all calls together, to be sent again. */
export class ReplayBudget {
  #leftBytes: number;

  constructor(bytes: number) {
    this.#leftBytes = bytes;
  }

  /** @returns whether so much more may be kept. */
  take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#leftBytes += bytes;
  }
}
