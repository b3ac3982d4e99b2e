import type { Limit, NamedLimit } from '@rollcall/platform/limits/rate-limiter.ts';
import type { Tier } from './caller.ts';

/** Callers who show no token have limits of their own, by their address. */
export type LimitedTier = Tier | 'anonymous';

/** How much each tier may ask for. */
export type TierLimits = Readonly<Record<LimitedTier, Limit>>;

/** A route whose limits differ for some tiers. */
export interface RouteLimits {
  /**
   * Names the route in keys and headers. Unique, and without `:`. Those of the routes file have
   * lower-case letters, digits and `-`; the gateway's own have a `.`, so that they are none of
   * these.
   */
  readonly route: string;
  readonly limits: Readonly<Partial<Record<LimitedTier, Limit>>>;
}

/** The limit that holds for a request, and which requests are counted together. */
export interface Policy extends NamedLimit {
  /** The tier, and the route if that has a limit of its own. */
  readonly name: string;
  /** Begins the keys of the counts. */
  readonly scope: string;
}

const MINUTE_MS = 60_000;

/** Contract 3, "Limits"; that for anonymous callers is ours. */
export const DEFAULT_LIMITS: TierLimits = {
  premium: { requests: 1000, windowMs: MINUTE_MS },
  standard: { requests: 100, windowMs: MINUTE_MS },
  free: { requests: 10, windowMs: MINUTE_MS },
  anonymous: { requests: 60, windowMs: MINUTE_MS },
};

/**
 * A route's limit replaces that of the tier and is counted by itself; all other requests of a
 * caller are counted together. Anonymous callers have keys of their own: an address must not count
 * as a subject.
 */
export function limitFor(tier: LimitedTier, override: RouteLimits | undefined, limits: TierLimits): Policy {
  const kind = tier === 'anonymous' ? 'address' : 'subject';
  const limit = override?.limits[tier];
  // Two colons in any case: subjects may have some themselves.
  if (override === undefined || limit === undefined) return { name: tier, limit: limits[tier], scope: `${kind}::` };
  return { name: `${tier}-${override.route}`, limit, scope: `${kind}:${override.route}:` };
}
