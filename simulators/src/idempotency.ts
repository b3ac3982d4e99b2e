import type { Clock } from '@rollcall/platform/clock.ts';

/** An answer as it was sent. */
export interface KeptAnswer {
  readonly status: number;
  readonly body: string;
}

/** What a key stands for when a request comes with it. */
export type Claim =
  | { readonly state: 'new' | 'running' | 'other-request' }
  | { readonly state: 'answered'; readonly answer: KeptAnswer };

interface Entry {
  readonly request: string;
  readonly answer: KeptAnswer | undefined;
  readonly claimedMs: number;
}

const KEPT_MS = 24 * 60 * 60 * 1000;

/** Idempotency keys of a provider, in memory, for 24 hours. */
export class IdempotencyKeys {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param request what must be the same: method, path and body. */
  claim(key: string, request: string): Claim {
    const entry = this.#entries.get(key);
    const isKept = entry !== undefined && this.#clock.monotonicMs() - entry.claimedMs < KEPT_MS;
    if (!isKept) {
      this.#entries.set(key, { request, answer: undefined, claimedMs: this.#clock.monotonicMs() });
      return { state: 'new' };
    }
    if (entry.request !== request) return { state: 'other-request' };
    return entry.answer === undefined ? { state: 'running' } : { state: 'answered', answer: entry.answer };
  }

  /** What every repetition gets from now on. */
  keep(key: string, answer: KeptAnswer): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#entries.set(key, { ...entry, answer });
  }

  /** Nothing was done: the key is as good as new. */
  release(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
