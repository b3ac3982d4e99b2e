import { type Link, LinkedList } from '@rollcall/platform/node-internals/linked-list.ts';

/** By so much a timeout may come late. */
const CHECK_INTERVAL_MS = 100;

/** A request whose answer is awaited. */
export interface Expectation {
  /** Called every {@link CHECK_INTERVAL_MS}. */
  check(): void;
}

/**
 * Checks all requests that are under way, often enough to notice that a service is too slow.
 *
 * The HTTP client has timeouts of its own, but makes and drops two timers for each request, which
 * it goes on holding for half a second: a third of all that outlives V8's collections of
 * short-lived objects. Time is counted in checks: while this process stands still no service is
 * late.
 */
export class AnswerWatch {
  readonly #expected = new LinkedList<Expectation>();
  #timer: NodeJS.Timeout | undefined;

  /** It is checked until it is unlinked. */
  add(expectation: Expectation): Link<Expectation> {
    this.#timer ??= setInterval(() => this.#check(), CHECK_INTERVAL_MS).unref();
    return this.#expected.add(expectation);
  }

  #check(): void {
    for (const { value } of this.#expected.links()) value.check();
    if (!this.#expected.isEmpty) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** What can be seen of a request that is under way. */
export interface Progress {
  /**
   * How much of the caller's request the service has read, in bytes of any meaning: only whether it
   * changes counts.
   */
  readonly sentBytes: number;
  /** Whether it is the caller who has to send, or to read, before the service can go on. */
  readonly isCallersTurn: boolean;
}

/**
 * How long a service has been waited for; not counted is the time in which it read something or
 * waited for the caller.
 */
export class Patience {
  /** Checks since anything happened. The first may come at once. */
  #checks = -1;
  #sentBytes = 0;

  /** Something of the answer has come. */
  renew(): void {
    this.#checks = -1;
  }

  /** @returns whether the service has been waited for that long by now; never too early. */
  check({ sentBytes, isCallersTurn }: Progress, limitMs: number): boolean {
    if (isCallersTurn || sentBytes !== this.#sentBytes) this.renew();
    this.#sentBytes = sentBytes;
    this.#checks += 1;
    return this.#checks * CHECK_INTERVAL_MS >= limitMs;
  }
}
