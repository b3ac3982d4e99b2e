import type { Clock } from '../clock.ts';
import { errorMessage } from '../errors.ts';
import { type Link, LinkedList } from '../node-internals/linked-list.ts';
import type { Logger } from '../process/log.ts';
import { backoffMs, sleep } from '../retry.ts';
import type { Limit, LimitDecision, RateLimiter } from './rate-limiter.ts';

interface FailoverLimiterDeps {
  /** Shared by all replicas; may fail or hang. */
  readonly shared: RateLimiter;
  /** Of this replica alone; never fails. */
  readonly own: { take(key: string, limit: Limit): LimitDecision };
  /** How long the shared limiter has for an answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with each request that the own limiter decides. */
  readonly onFallback: () => void;
}

interface Waiting {
  readonly key: string;
  readonly limit: Limit;
  /** By the time that this process has run. */
  readonly sinceMs: number;
  readonly resolve: (decision: LimitDecision) => void;
}

/** Between probes while the shared limiter is unavailable. */
const PROBES = { baseMs: 100, maxMs: 2000 };
/**
 * A probe without an answer is given up: whatever it waits for has had time to break. Longer than
 * an answer may last.
 */
const PROBE_LEAST_MS = 3000;
const PROBE_EXTRA_MS = 1000;
/** The shared limiter must have worked for so long before its next failure counts as the first. */
const STABLE_MS = 10_000;
/**
 * A start waits no longer for the shared limiter: requests are better served by the own one than
 * not at all.
 */
const START_GRACE_MS = 1000;
/**
 * How often the time for an answer is checked; a longer pause than two of these parts is one in
 * which this process stood still.
 */
const PARTS_OF_TIMEOUT = 5;

const PROBE_KEY = 'probe';
const PROBE_LIMIT: Limit = { requests: 1_000_000, windowMs: 1000 };

/**
 * Asks the shared limiter while it answers in time, else the replica's own, so that a request waits
 * for the timeout at most and never fails.
 *
 * ```
 *            the first failure, or an answer that is too late:
 *            all that wait are decided by the own limiter
 *   shared ────────────────────────────────────────────────────────> own
 *          <────────────────────────────────────────────────────────
 *            a probe, one at a time, is answered in time
 * ```
 *
 * While the own limiter decides nothing is sent to the shared one but probes, so nothing piles up
 * behind one that hangs.
 *
 * The timeout counts only while this process runs: when it stood still, requests are not sent yet
 * and answers not read, which says nothing of the shared limiter.
 *
 * The bound: the two do not know of each other's counts. In a window in which the shared limiter
 * was unavailable, a caller has at most its limit from each replica on its own, and its limit from
 * the shared one; that once more each time the shared one came back empty, or a replica restarted
 * while it was on its own.
 */
export class FailoverLimiter implements RateLimiter {
  readonly #deps: FailoverLimiterDeps;
  /** Oldest first. */
  readonly #waiting = new LinkedList<Waiting>();
  readonly #stopping = new AbortController();
  #usesShared = false;
  #usesSharedSinceMs = 0;
  /** In a row. */
  #failures = 0;
  /** Runs while anybody waits. */
  #tick: NodeJS.Timeout | undefined;
  #tickedMs = 0;
  /** How long this process has run, as of `#tickedMs`, in times in which anybody waited. */
  #ranMs = 0;

  constructor(deps: FailoverLimiterDeps) {
    this.#deps = deps;
  }

  /** Whether the shared limiter decides. */
  get usesShared(): boolean {
    return this.#usesShared;
  }

  /**
   * Resolves when the shared limiter works, or has had a second to begin; until then the own one
   * decides. Never rejects.
   */
  async start(): Promise<void> {
    const grace = new AbortController();
    const found = this.#seek();
    await Promise.race([found, sleep(START_GRACE_MS, AbortSignal.any([grace.signal, this.#stopping.signal]))]);
    grace.abort();
    if (!this.#usesShared) this.#deps.log.warn('rate limits are counted by this replica alone for now');
  }

  /** Ends the probes; what still waits is decided by the own limiter. */
  stop(): void {
    this.#stopping.abort();
    this.#useOwn();
  }

  take(key: string, limit: Limit): LimitDecision | Promise<LimitDecision> {
    if (!this.#usesShared) return this.#takeOwn(key, limit);
    return new Promise((resolve) => {
      if (this.#tick === undefined) this.#watch();
      const waiting: Waiting = { key, limit, sinceMs: this.#runningMs(), resolve };
      void this.#ask(this.#waiting.add(waiting));
    });
  }

  #takeOwn(key: string, limit: Limit): LimitDecision {
    this.#deps.onFallback();
    return this.#deps.own.take(key, limit);
  }

  async #ask(link: Link<Waiting>): Promise<void> {
    const { key, limit, resolve } = link.value;
    try {
      const decision = await this.#deps.shared.take(key, limit);
      // An answer that comes too late is not listened to.
      if (!link.isLinked) return;
      link.unlink();
      resolve(decision);
    } catch (error) {
      if (link.isLinked) this.#fail(error);
    }
  }

  get #partMs(): number {
    return this.#deps.timeoutMs / PARTS_OF_TIMEOUT;
  }

  #runningMs(): number {
    return this.#ranMs + Math.min(this.#deps.clock.monotonicMs() - this.#tickedMs, 2 * this.#partMs);
  }

  /** What is left for an answer to whoever has waited longest. */
  #leftMs(): number {
    const { first } = this.#waiting;
    return first === undefined ? this.#deps.timeoutMs : first.sinceMs + this.#deps.timeoutMs - this.#ranMs;
  }

  /** One timer for all that wait: they have come in order, and all have the same time. */
  #watch(): void {
    this.#tickedMs = this.#deps.clock.monotonicMs();
    this.#tick = setTimeout(
      () => {
        this.#ranMs = this.#runningMs();
        this.#tick = undefined;
        // Answers that have come meanwhile are read by then.
        setImmediate(() => this.#checkDeadline());
      },
      Math.ceil(Math.min(this.#partMs, this.#leftMs())),
    ).unref();
  }

  #checkDeadline(): void {
    if (this.#waiting.isEmpty) return;
    if (this.#leftMs() <= 0) this.#fail(new Error(`no answer within ${this.#deps.timeoutMs} ms`));
    else if (this.#tick === undefined) this.#watch();
  }

  #fail(error: unknown): void {
    const { clock, log } = this.#deps;
    log.warn({ reason: errorMessage(error) }, 'rate limits are counted by this replica alone for now');
    if (clock.monotonicMs() - this.#usesSharedSinceMs >= STABLE_MS) this.#failures = 0;
    this.#useOwn();
    void this.#seekLater();
  }

  #useOwn(): void {
    this.#usesShared = false;
    clearTimeout(this.#tick);
    this.#tick = undefined;
    for (const link of this.#waiting.links()) {
      const { key, limit, resolve } = link.value;
      link.unlink();
      resolve(this.#takeOwn(key, limit));
    }
  }

  async #seekLater(): Promise<void> {
    if (await this.#pause()) await this.#seek();
  }

  /** Resolves when the shared limiter decides again, or never will. */
  async #seek(): Promise<void> {
    while (!(await this.#probe())) if (!(await this.#pause())) return;
    if (this.#stopping.signal.aborted) return;
    this.#usesShared = true;
    this.#usesSharedSinceMs = this.#deps.clock.monotonicMs();
    this.#deps.log.info('rate limits are counted for all replicas together');
  }

  /** @returns false when it was stopped. */
  async #pause(): Promise<boolean> {
    const delayMs = backoffMs(this.#failures, PROBES);
    this.#failures += 1;
    return sleep(delayMs, this.#stopping.signal);
  }

  /** @returns whether the shared limiter answered in time. */
  async #probe(): Promise<boolean> {
    const { clock, shared, timeoutMs } = this.#deps;
    const sinceMs = clock.monotonicMs();
    const given = new AbortController();
    const probeMs = Math.max(PROBE_LEAST_MS, timeoutMs + PROBE_EXTRA_MS);
    try {
      const timeout = sleep(probeMs, AbortSignal.any([given.signal, this.#stopping.signal]));
      const answer = await Promise.race([shared.take(PROBE_KEY, PROBE_LIMIT), timeout]);
      return typeof answer === 'object' && clock.monotonicMs() - sinceMs <= timeoutMs;
    } catch {
      return false;
    } finally {
      given.abort();
    }
  }
}
