import type { AllowedAddresses } from '@rollcall/platform/outbound/address-rules.ts';
import { type Environment, parseConfig } from '@rollcall/platform/process/config.ts';
import { type ApiConfig, apiConfig, apiSettings, portSetting } from '@rollcall/platform/process/settings.ts';
import { httpUrlFault } from '@rollcall/platform/service-address.ts';
import { type Static, Type } from 'typebox';
import type { WebhookRules } from './webhooks/domain/call-admission.ts';

/** Stands for the audience of the API server. */
const API_SERVER = 'api-server';

const schema = Type.Object({
  ...apiSettings(3001),
  ROLLCALL_GRPC_PORT: portSetting(50_051),
  ROLLCALL_DATABASE_URL: Type.String({ minLength: 1, description: 'postgres://user:password@host:port/database' }),
  ROLLCALL_TTL_SECONDS: Type.Integer({ minimum: 5, maximum: 86_400, default: 60 }),
  ROLLCALL_AUTHENTICATION: Type.Enum(['off', 'token-review'], { default: 'off' }),
  ROLLCALL_TOKEN_AUDIENCE: Type.String({
    minLength: 1,
    default: 'rollcall',
    description: `Audience of service accounts' tokens; '${API_SERVER}': that of the API server`,
  }),
  ROLLCALL_READS: Type.Enum(['open', 'authenticated'], {
    default: 'open',
    description: 'Whether reading needs credentials, too, where authentication is on',
  }),
  ROLLCALL_REGISTRATIONS_PER_SUBJECT: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1000 }),
  ROLLCALL_GATEWAY_KEYS_URL: Type.Optional(
    Type.String({ minLength: 1, description: "The gateway's key set, /.well-known/jwks.json" }),
  ),
  ROLLCALL_GATEWAY_ISSUER: Type.String({ minLength: 1, default: 'rollcall' }),
  ROLLCALL_JOB_RETENTION_SECONDS: Type.Integer({ minimum: 0, maximum: 10 * 365 * 86_400, default: 7 * 86_400 }),
  ROLLCALL_WEBHOOK_SECRET_STORE: Type.String({
    minLength: 1,
    default: 'rollcall-webhooks',
    description: 'The Secret in which the secrets of webhooks are kept',
  }),
  ROLLCALL_WEBHOOK_ALLOW_UNSIGNED: Type.Boolean({ default: false }),
  ROLLCALL_WEBHOOK_LEGACY_SIGNATURES: Type.Boolean({ default: false }),
  ROLLCALL_WEBHOOK_PLAIN_SIGNATURES: Type.Boolean({ default: true }),
  ROLLCALL_WEBHOOK_ADDRESSES: Type.Enum(['public', 'cluster', 'any'], { default: 'cluster' }),
  ROLLCALL_SERVICE_ADDRESSES: Type.Enum(['public', 'cluster', 'any'], { default: 'cluster' }),
});

export interface AuthenticationConfig {
  /** Of service accounts' tokens. Undefined: the API server. */
  readonly audience: string | undefined;
  /** Whether reads need credentials, too. */
  readonly reads: 'open' | 'authenticated';
  /** Whose clients may call, too. */
  readonly gateway: { readonly jwksUrl: URL; readonly issuer: string } | undefined;
}

/** Settings of the registry process. */
export interface RegistryConfig extends ApiConfig {
  readonly grpcPort: number;
  readonly databaseUrl: string;
  /** Given to every registration; 60 by contract. */
  readonly ttlSeconds: number;
  /** Undefined: anyone may call (contract 1, "Authentication"). */
  readonly authentication: AuthenticationConfig | undefined;
  /** How many registrations one authenticated subject may have. */
  readonly registrationsPerSubject: number;
  /** Which calls of webhooks may be made. */
  readonly webhookRules: WebhookRules;
  /** How long finished delivery jobs are kept in the cluster; the history keeps them. */
  readonly jobRetentionMs: number;
  /** Name of the Secret in which the secrets of webhooks are kept. */
  readonly webhookSecrets: string;
  /** Where notifications may go. */
  readonly webhookAddresses: AllowedAddresses;
  /** Where services may be registered. */
  readonly serviceAddresses: AllowedAddresses;
}

/** @throws ConfigError naming every faulty variable. */
export function registryConfig(environment: Environment): RegistryConfig {
  const parsed: Static<typeof schema> = parseConfig(schema, environment);
  return {
    ...apiConfig(parsed),
    grpcPort: parsed.ROLLCALL_GRPC_PORT,
    databaseUrl: parsed.ROLLCALL_DATABASE_URL,
    ttlSeconds: parsed.ROLLCALL_TTL_SECONDS,
    authentication: authentication(parsed),
    registrationsPerSubject: parsed.ROLLCALL_REGISTRATIONS_PER_SUBJECT,
    webhookRules: {
      allowUnsigned: parsed.ROLLCALL_WEBHOOK_ALLOW_UNSIGNED,
      legacySignatures: parsed.ROLLCALL_WEBHOOK_LEGACY_SIGNATURES,
      plainSignatures: parsed.ROLLCALL_WEBHOOK_PLAIN_SIGNATURES,
    },
    jobRetentionMs: parsed.ROLLCALL_JOB_RETENTION_SECONDS * 1000,
    webhookSecrets: parsed.ROLLCALL_WEBHOOK_SECRET_STORE,
    webhookAddresses: parsed.ROLLCALL_WEBHOOK_ADDRESSES,
    serviceAddresses: parsed.ROLLCALL_SERVICE_ADDRESSES,
  };
}

function authentication(parsed: Static<typeof schema>): RegistryConfig['authentication'] {
  if (parsed.ROLLCALL_AUTHENTICATION === 'off') return undefined;
  const { ROLLCALL_GATEWAY_KEYS_URL: url, ROLLCALL_GATEWAY_ISSUER: issuer } = parsed;
  const fault = url === undefined ? undefined : httpUrlFault(url);
  if (fault !== undefined) throw new Error(`Invalid configuration:\n  ROLLCALL_GATEWAY_KEYS_URL ${fault}`);
  const gateway = url === undefined ? undefined : { jwksUrl: new URL(url), issuer };
  const { ROLLCALL_TOKEN_AUDIENCE: audience, ROLLCALL_READS: reads } = parsed;
  return { audience: audience === API_SERVER ? undefined : audience, reads, gateway };
}
