import type { Clock } from '@rollcall/platform/clock.ts';
import { type Breaker, createBreaker } from '@rollcall/platform/outbound/breaker.ts';
import { type HttpAnswer, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import type { Registry } from 'prom-client';
import { busy, unavailable } from './call-errors.ts';
import { type CallOutcome, createCallMetrics } from './call-metrics.ts';

export interface TrafficDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
  /** Whether a service is in the graph. */
  readonly isKnown: (subgraph: string) => boolean;
  /** Calls of one subgraph at a time. */
  readonly mostCalls: number;
  /** For one call; its turn may take as long again. */
  readonly timeoutMs: number;
}

/** A subgraph, and where it is. */
interface Target {
  readonly subgraph: string;
  readonly urls: readonly string[];
}

/** Calls of subgraphs, of all generations of the graph. */
export interface Traffic {
  /**
   * Makes a call in its turn, unless the subgraph is left alone because it has failed.
   *
   * @param signal of who waits for it. @throws GraphQLError where it is not made, else what the call throws.
   */
  pass(target: Target, call: () => Promise<HttpAnswer>, signal: AbortSignal): Promise<HttpAnswer>;
  /** A call that joined another one is counted. */
  shared(subgraph: string): void;
}

/** Short, so that a service that is back is soon asked again. */
const BREAKER = { consecutiveFailures: 5, openMs: 500, maxOpenMs: 5000 };
/** For each call that may be under way so many may wait. */
const WAITING_PER_CALL = 10;
/** A service that is not there, as who stands in front of it says. Of others it is not known whose fault it is. */
const DOWN: ReadonlySet<number> = new Set([502, 503, 504]);

export function createTraffic({ clock, log, metrics, isKnown, mostCalls, timeoutMs }: TrafficDeps): Traffic {
  const observed = createCallMetrics({ metrics, clock, isKnown });
  const breakers = new Map<string, { readonly place: string; readonly breaker: Breaker }>();
  const limiter = createConcurrencyLimiter({
    mostPerKey: mostCalls,
    waitingPerKey: mostCalls * WAITING_PER_CALL,
    maxWaitMs: timeoutMs,
  });

  /** Another place has another one: what was there has gone. */
  function breakerOf({ subgraph, urls }: Target): Breaker {
    const place = [...urls].sort().join(' ');
    const known = breakers.get(subgraph);
    if (known?.place === place) return known.breaker;
    for (const name of breakers.keys()) if (!isKnown(name)) breakers.delete(name);
    const breaker = createBreaker(clock, { ...BREAKER, probeMs: timeoutMs });
    breakers.set(subgraph, { place, breaker });
    return breaker;
  }

  function fail(breaker: Breaker, subgraph: string): CallOutcome {
    const before = breaker.state();
    breaker.failed();
    if (before === 'closed' && breaker.state() === 'open')
      log.warn({ subgraph }, 'a subgraph is left alone, as it fails');
    return 'failed';
  }

  async function make(target: Target, call: () => Promise<HttpAnswer>, signal: AbortSignal): Promise<HttpAnswer> {
    const breaker = breakerOf(target);
    if (!breaker.tryAcquire()) {
      observed.refused(target.subgraph, 'failing');
      throw unavailable('The service has failed, and is not asked for a moment');
    }
    const startedMs = clock.monotonicMs();
    let outcome: CallOutcome = 'abandoned';
    try {
      const answer = await call();
      if (DOWN.has(answer.status)) outcome = fail(breaker, target.subgraph);
      else {
        outcome = 'answered';
        breaker.succeeded();
      }
      return answer;
    } catch (error) {
      if (!signal.aborted && error instanceof NoAnswerError) outcome = fail(breaker, target.subgraph);
      else breaker.abandoned();
      throw error;
    } finally {
      observed.made(target.subgraph, outcome, (clock.monotonicMs() - startedMs) / 1000);
    }
  }

  return {
    async pass(target, call, signal) {
      let isBegun = false;
      try {
        const begin = () => {
          isBegun = true;
          signal.throwIfAborted();
          return make(target, call, signal);
        };
        return await limiter.run(target.subgraph, begin, signal);
      } catch (error) {
        if (isBegun || signal.aborted) throw error;
        observed.refused(target.subgraph, 'busy');
        throw busy();
      }
    },
    shared: (subgraph) => observed.shared(subgraph),
  };
}
