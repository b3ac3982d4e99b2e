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

/**
 * Builds the table anew from all rules; it never changes afterwards. Of two with the same prefix the first holds.
 *
 * Paths are compared as they read once decoded: services take `/%61dmin` for `/admin`, and so would a rule's scopes and limit be
 * got around. What remains below the prefix goes on as it came.
 */
export function buildRoutes(rules: readonly RouteRule[]): Route {
  const byLength = rules
    .map((rule) => {
      const plain = plainBytes(rule.prefix);
      return { rule, plain, segments: plain.split('/').length };
    })
    .toSorted((a, b) => b.plain.length - a.plain.length);

  return (path) => {
    const plain = path.includes('%') ? plainBytes(path) : path;
    const found = byLength.find((each) => plain === each.plain || plain.startsWith(`${each.plain}/`));
    if (found !== undefined) {
      const { service, upstreamPrefix } = found.rule;
      return { service, path: `${upstreamPrefix}${below(path, found.segments)}` || '/', rule: found.rule };
    }
    if (!path.startsWith(API)) return undefined;
    const end = path.indexOf('/', API.length);
    const segment = path.slice(API.length, end === -1 ? undefined : end);
    const service = decoded(segment);
    if (service === undefined || service === '') return undefined;
    return { service, path: end === -1 ? '/api/v1' : `/api/v1${path.slice(end)}`, rule: undefined };
  };
}

/** Of any percent-encoding, and never fails: a character for each byte of the path in UTF-8. */
function plainBytes(path: string): string {
  const encoded = Buffer.from(path, 'utf8').toString('latin1');
  return encoded.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** What follows the first so many segments, with its slash: encoded ones are refused before (path.ts). */
function below(path: string, segments: number): string {
  const rest = path.split('/').slice(segments);
  return rest.length === 0 ? '' : `/${rest.join('/')}`;
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
