import { MAIL_BODY_BYTES } from '@rollcall/platform/http/operations/communication.ts';
import type { Operation } from '@rollcall/platform/http/operations/operation.ts';
import { restOperation } from '@rollcall/platform/http/scopes.ts';
import type { RouteLimits } from '../../admission/limit-for.ts';
import { GatewayError } from '../../errors.ts';
import { REGISTRY } from '../discovery/targets.ts';

/**
 * A rule for paths that begin with `prefix`, at a segment's end. Of several that fit, the longest
 * holds.
 */
export interface RouteRule {
  readonly prefix: string;
  /** The registered name of the service that answers. */
  readonly service: string;
  /** What replaces the prefix on the way to the service. */
  readonly upstreamPrefix: string;
  /** Every one of which a caller's token must have. */
  readonly scopes: readonly string[];
  /** These instead for methods other than GET, HEAD and OPTIONS; empty: the same. */
  readonly writeScopes: readonly string[];
  /** Absent: all. */
  readonly methods?: readonly string[] | undefined;
  /** Whether requests without a token are let through; they are limited by address. */
  readonly anonymous: boolean;
  /** Instead of those of the caller's tier, counted for this rule alone. */
  readonly limits?: RouteLimits | undefined;
  /** For the beginning of the answer; that of the gateway when absent. */
  readonly timeoutMs?: number | undefined;
  /** Of a request, where it is more than the gateway lets through otherwise. */
  readonly bodyLimitBytes?: number;
  /** Whether the path is there without the service, too: it is 503 then, and not 404. */
  readonly isPromised?: boolean;
  /**
   * Whether the service acts for the caller as long as a WebSocket or a stream of events lasts. An
   * identity for it lasts as long then.
   */
  readonly actsOn?: boolean;
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
const PAYMENT = 'payment';
const COMMUNICATION = 'communication';
const FEDERATION = 'federation';

const MINUTE_MS = 60_000;
const READ_AND_POST = ['GET', 'HEAD', 'POST'];
/** Requests a minute of an address from which many people's come: 200 a second. */
const FOR_MANY = 12_000;

/** Where a browser, which shows no token, reads how a service of ours is called. */
const DOCUMENTATION = ['/docs', '/openapi.json'];

/** Whose GraphQL endpoint, which is not below `/api/v1`, is reached by their name. */
const SUBGRAPHS = [COMMUNICATION, PAYMENT];

/** What contract 3 names that is not `/api/v1/<service>/<rest>`, and what anybody may read. */
export const builtInRules: readonly RouteRule[] = [
  ...[REGISTRY, FEDERATION, ...SUBGRAPHS].flatMap((service) =>
    DOCUMENTATION.map((path) => ({
      ...defaults(),
      prefix: `${API}${service}${path}`,
      service,
      upstreamPrefix: `${baseOf(service)}${path}`,
      methods: ['GET', 'HEAD', 'OPTIONS'],
      anonymous: true,
    })),
  ),
  ...SUBGRAPHS.map((service) => ({
    ...defaults(),
    prefix: `${API}${service}/graphql`,
    service,
    upstreamPrefix: '/api/graphql',
    ...(service === COMMUNICATION && { bodyLimitBytes: MAIL_BODY_BYTES }),
  })),
  { ...defaults(), prefix: `${API}payment/transactions`, service: PAYMENT, upstreamPrefix: '/api/v1/payments' },
  {
    ...defaults(),
    prefix: '/api/graphql',
    service: FEDERATION,
    upstreamPrefix: '/api/graphql',
    isPromised: true,
    actsOn: true,
  },
  { ...defaults(), prefix: `${API}${FEDERATION}`, service: FEDERATION, upstreamPrefix: baseOf(FEDERATION) },
  // For people with a link, whose token says what they may. Many mobile ones share an address.
  open({ prefix: '/pay', service: PAYMENT, name: 'payment.pages', methods: READ_AND_POST, requests: 600 }),
  // Mailbox providers call it for all who have their mail there (RFC 8058).
  open({
    prefix: '/unsubscribe',
    service: COMMUNICATION,
    name: 'communication.unsubscribe',
    methods: READ_AND_POST,
    requests: FOR_MANY,
  }),
  // Of providers, which sign what they send, or know a secret path.
  ...SUBGRAPHS.map((service) => ({
    ...open({
      prefix: `${API}${service}/notifications`,
      service,
      name: `${service}.notifications`,
      methods: ['POST'],
      requests: FOR_MANY,
    }),
    upstreamPrefix: `${API}notifications`,
  })),
];

interface OpenPath {
  readonly prefix: string;
  readonly service: string;
  /** Of its limit. */
  readonly name: string;
  readonly methods: readonly string[];
  /** That one address may send in a minute. */
  readonly requests: number;
}

/** A rule for who has no token of the gateway's. The path stays as it is. */
function open({ prefix, service, name, methods, requests }: OpenPath): RouteRule {
  const limits = { route: name, limits: { anonymous: { requests, windowMs: MINUTE_MS } } };
  return { ...defaults(), prefix, service, upstreamPrefix: prefix, methods, anonymous: true, limits };
}

/** A rule's settings where nothing is said. */
export function defaults(): Pick<RouteRule, 'scopes' | 'writeScopes' | 'anonymous'> {
  return { scopes: [], writeScopes: [], anonymous: false };
}

/** The methods that services can be called with. */
export const METHODS: readonly string[] = [
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'QUERY',
  'TRACE',
];
const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * @returns what a caller's token must have for a request: the scopes of the rule and, at the
 * services of Rollcall, that of the operation. What a request of GraphQL needs its service says.
 */
export function scopesFor(destination: Destination, method: string): readonly string[] {
  const { rule } = destination;
  const scopes = rule === undefined ? [] : scopesOf(rule, method);
  const operation = operationOf(destination, method);
  return operation?.scope === undefined ? scopes : [...scopes, operation.scope];
}

/**
 * @param usual of all requests, in bytes.
 * @returns how many a request may have. Bodies pass as they come, so a larger one takes no more memory.
 */
export function bodyLimitFor(destination: Destination, method: string, usual: number): number {
  const own = destination.rule?.bodyLimitBytes ?? operationOf(destination, method)?.bodyLimitBytes;
  return Math.max(usual, own ?? 0);
}

function operationOf({ service, path }: Destination, method: string): Operation | undefined {
  const base = baseOf(service);
  return path.startsWith(`${base}/`) ? restOperation(service, method, path.slice(base.length)) : undefined;
}

/** Where the paths of a service begin. */
function baseOf(service: string): string {
  return service === FEDERATION ? '/api' : '/api/v1';
}

function scopesOf({ scopes, writeScopes }: RouteRule, method: string): readonly string[] {
  return READING.has(method) || writeScopes.length === 0 ? scopes : writeScopes;
}

/**
 * @returns where a path goes; undefined: nowhere. `/api/v1/<service>/<rest>` goes to the service as
 * `/api/v1/<rest>`.
 * @throws GatewayError INVALID_PATH where a service may read a path as one that another rule holds
 * for.
 */
export type Route = (path: string) => Destination | undefined;

/**
 * Builds the table anew from all rules; it never changes afterwards. Of two with the same prefix
 * the first holds.
 *
 * Paths are compared as they read once decoded: services read `/%61dmin` as `/admin`, and so would
 * a rule's scopes and limit be got around. Many also ignore the case of letters, or parameters of
 * segments (`/admin;x`); whether one does is not known here, so what reads like a rule's path and
 * is none is refused. What remains below the prefix goes on as it came.
 */
export function buildRoutes(rules: readonly RouteRule[]): Route {
  const byLength = rules
    .map((rule) => {
      const plain = plainBytes(rule.prefix);
      return { rule, plain, loose: loosely(plain), segments: plain.split('/').length };
    })
    .toSorted((a, b) => b.plain.length - a.plain.length);

  return (path) => {
    const plain = path.includes('%') ? plainBytes(path) : path;
    const found = byLength.find((each) => isWithin(plain, each.plain));
    if (VARIED.test(plain)) {
      const loose = loosely(plain);
      const alike = byLength.find((each) => isWithin(loose, each.loose));
      if (alike?.loose !== found?.loose) throw ambiguous();
    }
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

/** What {@link loosely} changes. */
const VARIED = /[A-Z;]/;

function loosely(plain: string): string {
  return plain.replaceAll(/;[^/]*/g, '').toLowerCase();
}

function isWithin(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}

function ambiguous(): GatewayError {
  return new GatewayError('INVALID_PATH', { message: 'The path reads like that of a route, and is not' });
}

/** Of any percent-encoding, and never fails: a character for each byte of the path in UTF-8. */
function plainBytes(path: string): string {
  const encoded = Buffer.from(path, 'utf8').toString('latin1');
  return encoded.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/**
 * What follows the first so many segments, with its slash: encoded ones are refused before
 * (path.ts).
 */
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
