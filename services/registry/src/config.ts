import { allowedAddresses } from '@rollcall/platform/outbound/address-rules.ts';
import { type Environment, parseConfig } from '@rollcall/platform/process/config.ts';
import { apiConfig, apiSettings, portSetting } from '@rollcall/platform/process/settings.ts';
import { httpUrlFault } from '@rollcall/platform/service-address.ts';
import { type Static, Type } from 'typebox';

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
  ROLLCALL_WEBHOOK_ADDRESSES: Type.Enum(allowedAddresses, { default: 'cluster' }),
  ROLLCALL_SERVICE_ADDRESSES: Type.Enum(allowedAddresses, { default: 'cluster' }),
});

/** Settings of the registry process. */
export type RegistryConfig = ReturnType<typeof registryConfig>;

/** @throws ConfigError naming every faulty variable. */
export function registryConfig(environment: Environment) {
  const parsed: Static<typeof schema> = parseConfig(schema, environment);
  return {
    ...apiConfig(parsed),
    grpcPort: parsed.ROLLCALL_GRPC_PORT,
    databaseUrl: parsed.ROLLCALL_DATABASE_URL,
    /** Given to every registration; 60 by contract. */
    ttlSeconds: parsed.ROLLCALL_TTL_SECONDS,
    authentication: parsed.ROLLCALL_AUTHENTICATION === 'off' ? undefined : authentication(parsed),
    /** How many registrations one authenticated subject may have. */
    registrationsPerSubject: parsed.ROLLCALL_REGISTRATIONS_PER_SUBJECT,
    /** Which calls of webhooks may be made. */
    webhookRules: {
      allowUnsigned: parsed.ROLLCALL_WEBHOOK_ALLOW_UNSIGNED,
      legacySignatures: parsed.ROLLCALL_WEBHOOK_LEGACY_SIGNATURES,
      plainSignatures: parsed.ROLLCALL_WEBHOOK_PLAIN_SIGNATURES,
    },
    /** How long finished delivery jobs are kept in the cluster; the history keeps them. */
    jobRetentionMs: parsed.ROLLCALL_JOB_RETENTION_SECONDS * 1000,
    /** Name of the Secret in which the secrets of webhooks are kept. */
    webhookSecrets: parsed.ROLLCALL_WEBHOOK_SECRET_STORE,
    /** Where notifications may go. */
    webhookAddresses: parsed.ROLLCALL_WEBHOOK_ADDRESSES,
    /** Where services may be registered. */
    serviceAddresses: parsed.ROLLCALL_SERVICE_ADDRESSES,
  };
}

function authentication(parsed: Static<typeof schema>) {
  const { ROLLCALL_GATEWAY_KEYS_URL: url, ROLLCALL_GATEWAY_ISSUER: issuer } = parsed;
  const fault = url === undefined ? undefined : httpUrlFault(url);
  if (fault !== undefined) throw new Error(`Invalid configuration:\n  ROLLCALL_GATEWAY_KEYS_URL ${fault}`);
  const { ROLLCALL_TOKEN_AUDIENCE: audience, ROLLCALL_READS: reads } = parsed;
  return {
    /** Of service accounts' tokens. Undefined: the API server. */
    audience: audience === API_SERVER ? undefined : audience,
    /** Whether reads need credentials, too. */
    reads,
    /** Whose clients may call, too. */
    gateway: url === undefined ? undefined : { jwksUrl: new URL(url), issuer },
  };
}
