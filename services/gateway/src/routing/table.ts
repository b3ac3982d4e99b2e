import type { RouteLimits } from '../policy/limits/limit-for.ts';

/** A rule for paths that begin with `prefix`, at a segment's end. Of several that fit, the longest holds. */
export interface RouteRule {
  readonly prefix: string;
  /** The registered name of the service that answers. */
  readonly service: string;
  /** What replaces the prefix on the way to the service. */
  readonly upstreamPrefix: string;
  /** Every one of which a caller's token must have. */
  readonly scopes: readonly string[];
  /** Absent: all. */
  readonly methods?: readonly string[] | undefined;
  /** Whether requests without a token are let through; they are limited by address. */
  readonly anonymous: boolean;
  /** Instead of those of the caller's tier, counted for this rule alone. */
  readonly limits?: RouteLimits | undefined;
  /** For the beginning of the answer; that of the gateway when absent. */
  readonly timeoutMs?: number | undefined;
}

/** Where a request goes. */
export interface Destination {
  readonly service: string;
  /** Path below the service's registered URL. */
  readonly path: string;
  /** The rule that says so; undefined: the one that holds for all services. */
  readonly rule: RouteRule | undefined;
}

const API = '/api/v1/';

/** What contract 3 names that is not `/api/v1/<service>/<rest>`. */
export const builtInRules: readonly RouteRule[] = [
  { ...defaults(), prefix: '/api/v1/payment/transactions', service: 'payment', upstreamPrefix: '/api/v1/payments' },
  { ...defaults(), prefix: '/api/graphql', service: 'federation', upstreamPrefix: '/api/graphql' },
];

/** A rule's settings where nothing is said. */
export function defaults(): Pick<RouteRule, 'scopes' | 'anonymous'> {
  return { scopes: [], anonymous: false };
}

/** @returns where a path goes; undefined: nowhere. `/api/v1/<service>/<rest>` goes to the service as `/api/v1/<rest>`. */
export type Route = (path: string) => Destination | undefined;

/** Builds the table anew from all rules; it never changes afterwards. Of two with the same prefix the first holds. */
export function buildRoutes(rules: readonly RouteRule[]): Route {
  const byLength = rules.toSorted((a, b) => b.prefix.length - a.prefix.length);

  return (path) => {
    const rule = byLength.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`));
    if (rule !== undefined) {
      const { service, upstreamPrefix, prefix } = rule;
      return { service, path: `${upstreamPrefix}${path.slice(prefix.length)}` || '/', rule };
    }
    if (!path.startsWith(API)) return undefined;
    const end = path.indexOf('/', API.length);
    const segment = path.slice(API.length, end === -1 ? undefined : end);
    const service = decoded(segment);
    if (service === undefined || service === '') return undefined;
    return { service, path: end === -1 ? '/api/v1' : `/api/v1${path.slice(end)}`, rule: undefined };
  };
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
