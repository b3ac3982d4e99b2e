import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import { FailoverLimiter } from '@rollcall/platform/limits/failover-limiter.ts';
import { headersOf } from '@rollcall/platform/limits/headers.ts';
import { MemoryLimiter } from '@rollcall/platform/limits/memory-limiter.ts';
import type { LimitDecision, RateLimiter } from '@rollcall/platform/limits/rate-limiter.ts';
import { RedisLimiter } from '@rollcall/platform/limits/redis-limiter.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Redis } from '@rollcall/platform/redis/client.ts';
import { Counter, Gauge, type Registry } from 'prom-client';
import { GatewayError } from '../errors.ts';
import type { Caller } from './caller.ts';
import { clientAddress, networkOf, type TrustedProxies } from './client-address.ts';
import { limitFor, type Policy, type RouteLimits, type TierLimits } from './limit-for.ts';

export interface LimitsDeps {
  readonly limits: TierLimits;
  readonly trustedProxies: TrustedProxies;
  /** Undefined: each replica counts by itself. */
  readonly redis: Redis | undefined;
  /** Begins the keys there. */
  readonly redisPrefix: string;
  /** How long Redis has for an answer. */
  readonly redisTimeoutMs: number;
  readonly metrics: Registry;
  readonly log: Logger;
  readonly clock?: Clock;
}

/** What the limits must know of a request. */
export interface LimitedRequest {
  /** Undefined: the request shows no token. */
  readonly caller: Pick<Caller, 'subject' | 'tier'> | undefined;
  /** Of the connection; undefined once that is gone. */
  readonly remoteAddress: string | undefined;
  /** The header `X-Forwarded-For`. */
  readonly forwardedFor: string | readonly string[] | undefined;
  /** The limits of its route, if that has any of its own. */
  readonly route: RouteLimits | undefined;
  /**
   * Without a caller: whom the request says it is from. Its requests from one address are counted
   * by themselves.
   */
  readonly claimed?: string | undefined;
}

export interface Verdict {
  /** For the answer, whatever it is. */
  readonly headers: Readonly<Record<string, string>>;
  /** RATE_LIMITED, with the same headers; undefined where the request may go on. */
  readonly refusal: GatewayError | undefined;
}

/** The rate limits of a gateway. */
export interface Limits {
  /** Counts a request, or refuses it. At once where counts are in this process; never fails. */
  check(request: LimitedRequest): Verdict | Promise<Verdict>;
  /** Resolves when the store is found; before, each replica counts by itself. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Longer ones, which an external issuer may have, are counted by their hash, so that keys stay
 * small.
 */
const SUBJECT_LENGTH_MAX = 128;

export function createLimits(deps: LimitsDeps): Limits {
  const { limits, trustedProxies, metrics, clock = systemClock } = deps;
  const own = new MemoryLimiter({ clock });
  const shared = createShared(own, deps);
  const limiter: RateLimiter = shared ?? own;
  const refusals = new Counter({
    name: 'rollcall_gateway_rate_limited_total',
    help: 'Requests refused because a rate limit was used up, by policy',
    labelNames: ['policy'],
    registers: [metrics],
  });

  function verdictOf(policy: Policy, decision: LimitDecision): Verdict {
    const headers = headersOf(policy, decision);
    if (decision.allowed) return { headers, refusal: undefined };
    refusals.inc({ policy: policy.name });
    const details = {
      policy: policy.name,
      limit: policy.limit.requests,
      retryAfterSeconds: decision.retryAfterSeconds,
    };
    return { headers, refusal: new GatewayError('RATE_LIMITED', { headers, details }) };
  }

  return {
    check(request) {
      const policy = limitFor(request.caller?.tier ?? 'anonymous', request.route, limits);
      const decision = limiter.take(policy.scope + whoAsks(request, trustedProxies), policy.limit);
      return decision instanceof Promise
        ? decision.then((decided) => verdictOf(policy, decided))
        : verdictOf(policy, decision);
    },
    start: async () => shared?.start(),
    stop: async () => shared?.stop(),
  };
}

/** @returns undefined where there is no Redis. */
function createShared(own: MemoryLimiter, deps: LimitsDeps): FailoverLimiter | undefined {
  const { redis, redisPrefix: prefix, redisTimeoutMs: timeoutMs, metrics, log, clock = systemClock } = deps;
  const registers = [metrics];
  const fallbacks = new Counter({
    name: 'rollcall_gateway_limiter_fallbacks_total',
    help: 'Requests counted by this replica alone because Redis was unavailable or too slow',
    registers,
  });
  const onFallback = (): void => fallbacks.inc();
  const shared =
    redis &&
    new FailoverLimiter({
      shared: new RedisLimiter({ redis, prefix, clock }),
      own,
      timeoutMs,
      clock,
      log,
      onFallback,
    });
  void new Gauge({
    name: 'rollcall_gateway_limiter_store',
    help: 'Where requests are counted: 1 for the store in use, 0 for the other',
    labelNames: ['store'],
    registers,
    collect() {
      const usesShared = shared?.usesShared === true;
      this.set({ store: 'redis' }, usesShared ? 1 : 0);
      this.set({ store: 'memory' }, usesShared ? 0 : 1);
    },
  });
  return shared;
}

/** Ends the key that a request is counted by. */
function whoAsks(
  { caller, remoteAddress = 'unknown', forwardedFor, claimed }: LimitedRequest,
  trusted: TrustedProxies,
) {
  if (caller !== undefined) return shortened(caller.subject);
  const network = networkOf(clientAddress(remoteAddress, forwardedFor, trusted));
  return claimed === undefined ? network : `${network} ${shortened(claimed)}`;
}

function shortened(subject: string): string {
  if (subject.length <= SUBJECT_LENGTH_MAX) return subject;
  return `sha256:${createHash('sha256').update(subject).digest('base64url')}`;
}
