import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { isScopeToken } from '@rollcall/platform/http/scopes.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { serviceNameFault } from '@rollcall/platform/service-address.ts';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';
import { pathFault } from './path.ts';
import { buildRoutes, builtInRules, METHODS, type Route, type RouteRule } from './table.ts';

const CHECK_INTERVAL_MS = 2000;
const MINUTE_MS = 60_000;

const requestsPerMinute = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 }));
const scopes = Type.Optional(Type.Array(Type.String({ maxLength: 128 }), { maxItems: 64 }));
const path = Type.String({ maxLength: 1024 });
const schema = Type.Object(
  {
    routes: Type.Array(
      Type.Object(
        {
          name: Type.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' }),
          prefix: path,
          service: Type.String(),
          upstreamPrefix: Type.Optional(path),
          scopes,
          writeScopes: scopes,
          methods: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
          anonymous: Type.Optional(Type.Boolean()),
          requestsPerMinute: Type.Optional(
            Type.Object(
              {
                premium: requestsPerMinute,
                standard: requestsPerMinute,
                free: requestsPerMinute,
                anonymous: requestsPerMinute,
              },
              { additionalProperties: false },
            ),
          ),
          timeoutSeconds: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 3600 })),
        },
        { additionalProperties: false },
      ),
      { maxItems: 1000 },
    ),
  },
  { additionalProperties: false },
);

/** @throws Error naming what is wrong. */
export function parseRoutes(text: string): readonly RouteRule[] {
  const value: unknown = parse(text);
  if (!Value.Check(schema, value)) {
    const faults = [...Value.Errors(schema, value)].map(
      ({ instancePath, message }) => `${instancePath || '/'} ${message}`,
    );
    throw notValid([...new Set(faults)]);
  }
  const faults = value.routes.flatMap(faultsOf);
  if (faults.length > 0) throw notValid(faults);
  const names = value.routes.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw notValid([`two have the name ${twice}`]);
  return value.routes.map(toRule);
}

function notValid(faults: readonly string[]): Error {
  return new Error(`The routes are not valid: ${faults.join('; ')}`);
}

type RouteEntry = Static<typeof schema>['routes'][number];

/** What no schema says of a route. */
function faultsOf(route: RouteEntry): readonly string[] {
  const { name, service, prefix, upstreamPrefix = '', scopes = [], writeScopes = [], methods = [] } = route;
  const faults: string[] = [];
  const check = (field: string, fault: string | undefined): void => {
    if (fault !== undefined) faults.push(`${field} of the route ${name} ${fault}`);
  };
  check('service', serviceNameFault(service));
  check('prefix', prefixFault(prefix));
  if (upstreamPrefix !== '') check('upstreamPrefix', prefixFault(upstreamPrefix));
  for (const scope of [...scopes, ...writeScopes]) {
    if (!isScopeToken(scope)) check('a scope', `is ${JSON.stringify(scope)}; none has spaces, quotes or backslashes`);
  }
  for (const method of methods) {
    if (!METHODS.includes(method))
      check('a method', `is ${JSON.stringify(method)}, and not one of ${METHODS.join(', ')}`);
  }
  return faults;
}

function prefixFault(prefix: string): string | undefined {
  return prefix.startsWith('/') ? pathFault(prefix) : 'must begin with /';
}

function toRule(route: RouteEntry): RouteRule {
  const { name, prefix, service, methods, timeoutSeconds } = route;
  const limits = Object.entries(route.requestsPerMinute ?? {}).map(([tier, requests]) => [
    tier,
    { requests, windowMs: MINUTE_MS },
  ]);
  return {
    prefix: trimmed(prefix),
    service,
    upstreamPrefix: trimmed(route.upstreamPrefix ?? prefix),
    scopes: route.scopes ?? [],
    writeScopes: route.writeScopes ?? [],
    methods,
    anonymous: route.anonymous ?? false,
    limits: limits.length === 0 ? undefined : { route: name, limits: Object.fromEntries(limits) },
    timeoutMs: timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000,
  };
}

function trimmed(prefix: string): string {
  return prefix.replace(/\/+$/, '');
}

/** The route table in force. */
export interface RouteTable {
  readonly actor: Actor;
  readonly route: Route;
}

/**
 * The built-in rules, and those of a file that may change: Kubernetes replaces a mounted ConfigMap
 * in place. A file that cannot be read keeps the process from starting; later, what was read last
 * stays in force.
 *
 * @param file undefined: the built-in rules alone.
 */
export function createRouteTable(file: string | undefined, log: Logger): RouteTable {
  let current = buildRoutes(builtInRules);
  let loads = 0;

  async function load(path: string): Promise<void> {
    loads += 1;
    const load = loads;
    const rules = parseRoutes(await readFile(path, 'utf8'));
    // A later one has read the present file.
    if (load !== loads) return;
    current = buildRoutes([...rules, ...builtInRules]);
    log.info({ routes: rules.length }, 'routes read');
  }

  return {
    actor: {
      name: 'routes',
      async start() {
        if (file === undefined) return;
        await load(file);
        watchFile(file, { interval: CHECK_INTERVAL_MS, persistent: false }, () => {
          load(file).catch((err: unknown) =>
            log.error({ message: errorMessage(err) }, 'routes not read, the old ones stay'),
          );
        });
      },
      stop: async () => {
        if (file !== undefined) unwatchFile(file);
      },
    },
    route: (path) => current(path),
  };
}
