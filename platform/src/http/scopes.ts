import { matches } from './path-methods.ts';

/**
 * What a caller's token may hold for the operations of Rollcall itself. Services have scopes of
 * their own.
 */
export type Scope = 'registrations:read' | 'registrations:write' | 'jobs:read' | 'jobs:write' | 'metrics:read';

/** Stands for every scope. */
const EVERY_SCOPE = '*';

/** Something that a caller may ask for, the same wherever it is asked for. */
export interface Operation {
  /** What it does, for people. */
  readonly name: string;
  /** What a client of the gateway needs for it. Undefined: nothing. */
  readonly scope: Scope | undefined;
  /**
   * `METHOD /path` below the registry's `/api/v1`, which the gateway has at `/api/v1/registry`.
   * HEAD is GET.
   */
  readonly rest: readonly string[];
  /** Methods of rollcall.registry.v1.Registry. */
  readonly grpc?: readonly string[];
  /** Channels of the gateway's WebSocket endpoint. */
  readonly webSocket?: readonly string[];
}

/**
 * The operations of the registry. Gateway and registry both ask here, and each refuses by itself: a
 * route of the gateway's that names another way to the registry opens nothing.
 */
export const operations: readonly Operation[] = [
  {
    name: 'Find and watch services',
    scope: 'registrations:read',
    rest: [
      'GET /services',
      'GET /services/watch',
      'GET /services/:service_name',
      'GET /services/:service_name/instances',
      'GET /services/:service_name/instances/:instance_id',
    ],
    grpc: ['Get', 'List', 'ListInstances', 'Watch'],
    webSocket: ['registrations', 'instances'],
  },
  {
    name: 'Register, renew and unregister services',
    scope: 'registrations:write',
    rest: [
      'POST /services/register',
      'POST /services/:service_name/heartbeat',
      'DELETE /services/:service_name',
      'DELETE /services/:service_name/instances/:instance_id',
    ],
    grpc: ['Register', 'Heartbeat', 'Unregister'],
  },
  {
    // Whoever only reports need not be able to deploy.
    name: 'Report what a service says of itself',
    scope: 'registrations:write',
    rest: ['POST /webhooks/health', 'POST /webhooks/lifecycle'],
    grpc: ['ReportHealth', 'ReportLifecycle'],
  },
  {
    name: 'Read and watch delivery jobs',
    scope: 'jobs:read',
    rest: ['GET /jobs', 'GET /jobs/watch', 'GET /jobs/:job_id', 'GET /jobs/:job_id/events'],
    webSocket: ['jobs', 'jobs.{service_name}'],
  },
  {
    name: 'Read the history of updates, and check for newer versions',
    scope: 'jobs:read',
    rest: [
      'GET /updates/history',
      'GET /updates/history/:service_name',
      'GET /updates/history/:service_name/export/:format',
      'GET /updates/statistics',
      'POST /webhooks/check-updates',
    ],
  },
  {
    // The URLs of webhooks often hold what lets anybody call them.
    name: 'Read the configuration of webhooks and what was sent to them',
    scope: 'jobs:read',
    rest: ['GET /webhooks/config', 'GET /webhooks/deliveries', 'GET /webhooks/deliveries/:id'],
  },
  {
    // Who deploys runs programs.
    name: 'Deploy, roll back, promote, abort, record updates, configure webhooks and notify',
    scope: 'jobs:write',
    rest: [
      'POST /webhooks/update',
      'POST /webhooks/deploy',
      'POST /webhooks/rollback',
      'POST /webhooks/config',
      'POST /webhooks/notify',
      'POST /webhooks/deliveries/:id/replay',
      'POST /jobs/:job_id/promote',
      'POST /jobs/:job_id/abort',
    ],
  },
  { name: "Read the registry's metrics", scope: 'metrics:read', rest: ['GET /metrics'] },
  {
    name: 'Read health and documentation',
    scope: undefined,
    rest: ['GET /health', 'GET /openapi.json', 'GET /docs', 'GET /docs/*'],
  },
];

interface RestRow {
  readonly method: string;
  readonly pattern: readonly string[];
  readonly operation: Operation;
}

const restRows: readonly RestRow[] = operations.flatMap((operation) =>
  operation.rest.map((route) => {
    const [method = '', path = ''] = route.split(' ');
    return { method, pattern: path.split('/').slice(1), operation };
  }),
);

/**
 * What a request to the registry asks for. Of two routes that fit the first holds, which is the one
 * without parameters.
 *
 * @param path below `/api/v1`, as it came or as a route has it (`/services/:service_name`).
 * @returns undefined where the registry has no such route.
 */
export function restOperation(method: string, path: string): Operation | undefined {
  const asked = method === 'HEAD' ? 'GET' : method;
  const segments = path.split('/').slice(1).map(decoded);
  return restRows.find((row) => row.method === asked && matches(row.pattern, segments))?.operation;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** What a gRPC call to the registry asks for. @param method of rollcall.registry.v1.Registry. */
export function grpcOperation(method: string): Operation | undefined {
  return operations.find(({ grpc }) => grpc?.includes(method) === true);
}

/** @param channel as the table has it. @throws Error where it is not in the table. */
export function channelScope(channel: string): Scope {
  const scope = operations.find(({ webSocket }) => webSocket?.includes(channel) === true)?.scope;
  if (scope === undefined) throw new Error(`The table of scopes has no channel '${channel}'`);
  return scope;
}

/** Whether the scopes hold one, or the one that stands for all. */
export function hasScope({ scopes }: { readonly scopes: ReadonlySet<string> }, scope: string): boolean {
  return scopes.has(scope) || scopes.has(EVERY_SCOPE);
}

/** A scope token (RFC 6749, section 3.3). */
const SCOPE_TOKEN = /^[!#-[\]-~]+$/;

/** Whether it is a scope token: printable ASCII without space, `"` and `\`. */
export function isScopeToken(text: string): boolean {
  return SCOPE_TOKEN.test(text);
}
