import { type AllowedAddresses, allowedAddresses } from '@rollcall/platform/outbound/address-rules.ts';
import { type Environment, parseConfig } from '@rollcall/platform/process/config.ts';
import { type ApiConfig, apiConfig, apiSettings, portSetting } from '@rollcall/platform/process/settings.ts';
import { httpUrlFault } from '@rollcall/platform/service-address.ts';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parseTrustedProxies, type TrustedProxies } from './admission/client-address.ts';
import { DEFAULT_LIMITS, type TierLimits } from './admission/limit-for.ts';
import type { ExternalIssuer } from './identity/external-issuers.ts';
import type { Balancing } from './upstream/discovery/sites.ts';

const DAY_SECONDS = 86_400;
const perWindow = (requests: number) => Type.Integer({ minimum: 1, maximum: 1_000_000, default: requests });

const schema = Type.Object({
  ...apiSettings(3000),
  ROLLCALL_GRPC_PORT: portSetting(50_051),
  ROLLCALL_GRPC_RESETS_PER_SECOND: Type.Integer({ minimum: 1, maximum: 100_000, default: 100 }),
  ROLLCALL_ACCESS_LOG: Type.Enum(['on', 'off'], { default: 'on' }),
  ROLLCALL_REGISTRY_URLS: Type.String({
    minLength: 1,
    description:
      'Base URLs of registries, separated by commas: any that answers is followed, and calls of `registry` go to the first',
  }),
  ROLLCALL_REGISTRY_GRPC_URL: Type.Optional(Type.String({ minLength: 1, description: 'Where it offers gRPC' })),
  ROLLCALL_REDIS_URL: Type.Optional(Type.String({ minLength: 1, description: 'redis://:password@host:port' })),
  ROLLCALL_REDIS_PREFIX: Type.String({ minLength: 1, maxLength: 256, default: 'rollcall' }),
  ROLLCALL_REDIS_TIMEOUT_MS: Type.Integer({ minimum: 10, maximum: 5000, default: 100 }),
  ROLLCALL_KEYS_NAMESPACE: Type.Optional(
    Type.String({ minLength: 1, description: 'Namespace of the Secret of the signing keys' }),
  ),
  ROLLCALL_KEYS_SECRET: Type.String({ minLength: 1, default: 'rollcall-gateway-keys' }),
  ROLLCALL_KEY_ROTATION_SECONDS: Type.Integer({ minimum: 3600, default: 30 * DAY_SECONDS }),
  ROLLCALL_KEY_REFRESH_SECONDS: Type.Integer({ minimum: 1, maximum: 300, default: 60 }),
  ROLLCALL_TOKEN_ISSUER: Type.String({ minLength: 1, default: 'rollcall' }),
  ROLLCALL_TOKEN_AUDIENCE: Type.String({ minLength: 1, default: 'rollcall' }),
  ROLLCALL_TOKEN_SECONDS: Type.Integer({ minimum: 60, maximum: DAY_SECONDS, default: 3600 }),
  ROLLCALL_EXTERNAL_ISSUERS: Type.String({ default: '[]', description: 'JSON: issuer, audience, jwksUrl, ...' }),
  ROLLCALL_TRUSTED_PROXIES: Type.String({ default: '', description: 'Addresses and CIDR ranges, separated by commas' }),
  ROLLCALL_CORS_ORIGINS: Type.String({
    default: '',
    description: 'Origins of pages that may call, separated by commas; *: all',
  }),
  ROLLCALL_SERVICE_ADDRESSES: Type.Enum(allowedAddresses, {
    default: 'cluster',
    description: 'Where registered services may be',
  }),
  ROLLCALL_ZONE: Type.Optional(
    Type.String({ maxLength: 63, description: 'Where the gateway runs: instances of this zone get requests first' }),
  ),
  ROLLCALL_SLOW_START_SECONDS: Type.Integer({ minimum: 0, maximum: 3600, default: 30 }),
  ROLLCALL_ROUTES_FILE: Type.Optional(Type.String({ minLength: 1, description: 'Rules besides the built-in ones' })),
  ROLLCALL_LIMIT_PREMIUM: perWindow(DEFAULT_LIMITS.premium.requests),
  ROLLCALL_LIMIT_STANDARD: perWindow(DEFAULT_LIMITS.standard.requests),
  ROLLCALL_LIMIT_FREE: perWindow(DEFAULT_LIMITS.free.requests),
  ROLLCALL_LIMIT_ANONYMOUS: perWindow(DEFAULT_LIMITS.anonymous.requests),
  ROLLCALL_LIMIT_WINDOW_SECONDS: Type.Integer({ minimum: 5, maximum: 3600, default: 60 }),
  ROLLCALL_BODY_LIMIT_BYTES: Type.Integer({ minimum: 1024, default: 10 * 1024 * 1024 }),
  ROLLCALL_UPSTREAM_CONNECT_MS: Type.Integer({ minimum: 10, default: 2000 }),
  ROLLCALL_UPSTREAM_HEADERS_MS: Type.Integer({ minimum: 10, default: 30_000 }),
  ROLLCALL_UPSTREAM_BODY_MS: Type.Integer({ minimum: 10, default: 300_000 }),
});

const algorithm = Type.Enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']);
const issuersSchema = Type.Array(
  Type.Object(
    {
      issuer: Type.String({ minLength: 1 }),
      audience: Type.String({ minLength: 1 }),
      jwksUrl: Type.String({ minLength: 1 }),
      algorithms: Type.Optional(Type.Array(algorithm, { minItems: 1 })),
      defaultTier: Type.Optional(Type.Enum(['premium', 'standard', 'free'])),
    },
    { additionalProperties: false },
  ),
  { maxItems: 32 },
);
const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];

/** The Secret with the keys that tokens and identities are signed with. */
interface KeysConfig {
  /** Undefined: that of the ApiClients. */
  readonly namespace: string | undefined;
  readonly secretName: string;
  readonly rotateAfterMs: number;
  /** How often the Secret is read, and a key that is due is made. */
  readonly refreshMs: number;
}

/** Settings of the gateway process. Its namespace is that of the ApiClients and their Secrets. */
export interface GatewayConfig extends ApiConfig {
  readonly grpcPort: number;
  /** Calls that one connection may cancel; 20 times as many at once. */
  readonly grpcResetsPerSecond: number;
  readonly accessLog: boolean;
  readonly registry: {
    readonly urls: readonly string[];
    /** Undefined: its gRPC API is not passed on to. */
    readonly grpcOrigin: string | undefined;
  };
  /** Undefined: each replica counts by itself. */
  readonly redisUrl: string | undefined;
  /** Begins the keys there: installations that share a Redis differ in it. */
  readonly redisPrefix: string;
  readonly redisTimeoutMs: number;
  readonly keys: KeysConfig;
  readonly token: { readonly issuer: string; readonly audience: string; readonly lifetimeSeconds: number };
  readonly externalIssuers: readonly ExternalIssuer[];
  readonly trustedProxies: TrustedProxies;
  /** Of pages that may call, as browsers send them; `*`: all. */
  readonly corsOrigins: ReadonlySet<string>;
  /** Where registered services may be. */
  readonly serviceAddresses: AllowedAddresses;
  readonly balancing: Balancing;
  readonly routesFile: string | undefined;
  readonly limits: TierLimits;
  /** Of a request's body. */
  readonly bodyLimit: number;
  readonly upstream: { readonly connectMs: number; readonly headersMs: number; readonly bodyMs: number };
}

/** @throws Error naming every faulty variable, or the first fault within one. */
export function gatewayConfig(environment: Environment): GatewayConfig {
  const parsed: Static<typeof schema> = parseConfig(schema, environment);
  return {
    ...apiConfig(parsed),
    grpcPort: parsed.ROLLCALL_GRPC_PORT,
    grpcResetsPerSecond: parsed.ROLLCALL_GRPC_RESETS_PER_SECOND,
    accessLog: parsed.ROLLCALL_ACCESS_LOG === 'on',
    registry: {
      urls: baseUrls('ROLLCALL_REGISTRY_URLS', parsed.ROLLCALL_REGISTRY_URLS),
      grpcOrigin: baseUrls('ROLLCALL_REGISTRY_GRPC_URL', parsed.ROLLCALL_REGISTRY_GRPC_URL ?? '')[0],
    },
    redisUrl: parsed.ROLLCALL_REDIS_URL,
    redisPrefix: parsed.ROLLCALL_REDIS_PREFIX,
    redisTimeoutMs: parsed.ROLLCALL_REDIS_TIMEOUT_MS,
    keys: {
      namespace: parsed.ROLLCALL_KEYS_NAMESPACE,
      secretName: parsed.ROLLCALL_KEYS_SECRET,
      rotateAfterMs: parsed.ROLLCALL_KEY_ROTATION_SECONDS * 1000,
      refreshMs: parsed.ROLLCALL_KEY_REFRESH_SECONDS * 1000,
    },
    token: {
      issuer: parsed.ROLLCALL_TOKEN_ISSUER,
      audience: parsed.ROLLCALL_TOKEN_AUDIENCE,
      lifetimeSeconds: parsed.ROLLCALL_TOKEN_SECONDS,
    },
    externalIssuers: externalIssuers(parsed.ROLLCALL_EXTERNAL_ISSUERS, parsed.ROLLCALL_TOKEN_ISSUER),
    trustedProxies: trustedProxies(parsed.ROLLCALL_TRUSTED_PROXIES),
    corsOrigins: corsOrigins(parsed.ROLLCALL_CORS_ORIGINS),
    serviceAddresses: parsed.ROLLCALL_SERVICE_ADDRESSES,
    balancing: { zone: parsed.ROLLCALL_ZONE, slowStartMs: parsed.ROLLCALL_SLOW_START_SECONDS * 1000 },
    routesFile: parsed.ROLLCALL_ROUTES_FILE,
    limits: tierLimits(parsed),
    bodyLimit: parsed.ROLLCALL_BODY_LIMIT_BYTES,
    upstream: {
      connectMs: parsed.ROLLCALL_UPSTREAM_CONNECT_MS,
      headersMs: parsed.ROLLCALL_UPSTREAM_HEADERS_MS,
      bodyMs: parsed.ROLLCALL_UPSTREAM_BODY_MS,
    },
  };
}

function tierLimits(parsed: Static<typeof schema>): TierLimits {
  const windowMs = parsed.ROLLCALL_LIMIT_WINDOW_SECONDS * 1000;
  return {
    premium: { requests: parsed.ROLLCALL_LIMIT_PREMIUM, windowMs },
    standard: { requests: parsed.ROLLCALL_LIMIT_STANDARD, windowMs },
    free: { requests: parsed.ROLLCALL_LIMIT_FREE, windowMs },
    anonymous: { requests: parsed.ROLLCALL_LIMIT_ANONYMOUS, windowMs },
  };
}

function baseUrls(name: string, text: string): readonly string[] {
  return list(text).map((url) => {
    const fault = httpUrlFault(url);
    if (fault !== undefined) throw new Error(`Invalid configuration:\n  ${name}: each ${fault}`);
    return url.replace(/\/+$/, '');
  });
}

function corsOrigins(text: string): ReadonlySet<string> {
  const origins = list(text);
  const faulty = origins.find(
    (origin) => origin !== '*' && (!URL.canParse(origin) || new URL(origin).origin !== origin),
  );
  if (faulty !== undefined) {
    const example = 'such as https://app.example.com, without a path';
    throw new Error(`Invalid configuration:\n  ROLLCALL_CORS_ORIGINS: ${faulty} is no origin, ${example}`);
  }
  return new Set(origins);
}

function trustedProxies(text: string): TrustedProxies {
  try {
    return parseTrustedProxies(list(text));
  } catch (err) {
    throw new Error('Invalid configuration:\n  ROLLCALL_TRUSTED_PROXIES has what is no address or range', {
      cause: err,
    });
  }
}

function externalIssuers(text: string, own: string): readonly ExternalIssuer[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refuse('is no JSON');
  }
  if (!Value.Check(issuersSchema, value)) {
    const [fault] = Value.Errors(issuersSchema, value);
    throw refuse(`${fault?.instancePath ?? ''} ${fault?.message ?? 'is not valid'}`);
  }
  const names = [own, ...value.map(({ issuer }) => issuer)];
  if (new Set(names).size < names.length) throw refuse('names an issuer twice, or the gateway itself');
  return value.map((each) => {
    const fault = httpUrlFault(each.jwksUrl);
    if (fault !== undefined) throw refuse(`jwksUrl ${fault}`);
    return { ...each, algorithms: each.algorithms ?? DEFAULT_ALGORITHMS, defaultTier: each.defaultTier ?? 'free' };
  });
}

function refuse(why: string): Error {
  return new Error(`Invalid configuration:\n  ROLLCALL_EXTERNAL_ISSUERS ${why}`);
}

function list(text: string): readonly string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
}
