import { headersOf } from '@rollcall/platform/limits/headers.ts';
import { createLimiterStore, type LimiterStoreOptions, limitKeyOf } from '@rollcall/platform/limits/limiter-store.ts';
import type { LimitDecision } from '@rollcall/platform/limits/rate-limiter.ts';
import { Counter } from 'prom-client';
import { GatewayError } from '../errors.ts';
import type { Caller } from './caller.ts';
import { clientAddress, networkOf, type TrustedProxies } from './client-address.ts';
import { limitFor, type Policy, type RouteLimits, type TierLimits } from './limit-for.ts';

export interface LimitsDeps extends Omit<LimiterStoreOptions, 'metricsPrefix'> {
  readonly limits: TierLimits;
  readonly trustedProxies: TrustedProxies;
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

export function createLimits(deps: LimitsDeps): Limits {
  const { limits, trustedProxies, metrics } = deps;
  const limiter = createLimiterStore({ ...deps, metricsPrefix: 'rollcall_gateway' });
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
    start: () => limiter.start(),
    stop: () => limiter.stop(),
  };
}

/** Ends the key that a request is counted by. */
function whoAsks(
  { caller, remoteAddress = 'unknown', forwardedFor, claimed }: LimitedRequest,
  trusted: TrustedProxies,
) {
  if (caller !== undefined) return limitKeyOf(caller.subject);
  const network = networkOf(clientAddress(remoteAddress, forwardedFor, trusted));
  return claimed === undefined ? network : `${network} ${limitKeyOf(claimed)}`;
}
