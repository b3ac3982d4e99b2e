import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';
import { buildRoutes, builtInRules, type Route, type RouteRule } from './table.ts';

const CHECK_INTERVAL_MS = 2000;
const MINUTE_MS = 60_000;

const requestsPerMinute = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 }));
const scopes = Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 64 }));
const path = Type.String({ pattern: '^/[^?#]*$', maxLength: 1024 });
const schema = Type.Object(
  {
    routes: Type.Array(
      Type.Object(
        {
          name: Type.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' }),
          prefix: path,
          service: Type.String({ minLength: 1, maxLength: 253 }),
          upstreamPrefix: Type.Optional(Type.Union([path, Type.Literal('')])),
          scopes,
          writeScopes: scopes,
          methods: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Z]+$' }), { minItems: 1 })),
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
    throw new Error(`The routes are not valid: ${[...new Set(faults)].join('; ')}`);
  }
  const names = value.routes.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`The routes are not valid: two have the name ${twice}`);
  return value.routes.map(toRule);
}

function toRule(route: Static<typeof schema>['routes'][number]): RouteRule {
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
