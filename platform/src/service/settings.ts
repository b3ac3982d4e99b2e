import { isIPv6 } from 'node:net';
import { type Static, type TObject, Type } from 'typebox';
import { type AllowedAddresses, allowedAddresses } from '../outbound/address-rules.ts';
import { type ApiConfig, apiConfig, apiSettings } from '../process/settings.ts';
import { httpUrlFault } from '../service-address.ts';

/** Settings of every service with a database that is registered, to be spread into the schema of each. */
export const registeredSettings = (port: number) => ({
  ...apiSettings(port),
  ROLLCALL_DATABASE_URL: Type.String({ minLength: 1, description: 'postgres://user:password@host:port/database' }),
  ROLLCALL_GATEWAY_KEYS_URL: Type.String({
    minLength: 1,
    description: "The gateway's key set, /.well-known/jwks.json",
  }),
  ROLLCALL_GATEWAY_ISSUER: Type.String({ minLength: 1, default: 'rollcall' }),
  ROLLCALL_REGISTRY_URLS: Type.Optional(
    Type.String({ minLength: 1, description: 'Base URLs of registries, separated by commas; absent: not registered' }),
  ),
  ROLLCALL_SERVICE_URL: Type.Optional(
    Type.String({ minLength: 1, description: 'Where the gateway reaches this replica; needed to be registered' }),
  ),
  ROLLCALL_POD_IP: Type.Optional(
    Type.String({ minLength: 1, description: 'In place of ROLLCALL_SERVICE_URL: the address of the pod' }),
  ),
});

/** Settings of communication and payment alike, to be spread into the schema of each. */
export const serviceSettings = (port: number) => ({
  ...registeredSettings(port),
  ROLLCALL_VAULT_KEYS_FILE: Type.String({
    minLength: 1,
    description: 'Keys that seal what is personal or secret in the database: YAML, `keys: [{id, key}]`',
  }),
  ROLLCALL_PROVIDERS_FILE: Type.Optional(
    Type.String({ minLength: 1, description: 'Providers and their credentials, in YAML; absent: none' }),
  ),
  ROLLCALL_PUBLIC_URL: Type.String({
    minLength: 1,
    description: 'Where people and providers reach the gateway: base URL of links and of notifications',
  }),
  ROLLCALL_WEBHOOK_ADDRESSES: Type.Enum(allowedAddresses, { default: 'public' }),
  ROLLCALL_PROVIDER_ADDRESSES: Type.Enum(allowedAddresses, { default: 'public' }),
});

/** What every service with a database that is registered is told. */
interface RegisteredConfig extends ApiConfig {
  readonly databaseUrl: string;
  readonly gateway: { readonly jwksUrl: URL; readonly issuer: string };
  /** Undefined: it is not registered. */
  readonly registration: { readonly registries: readonly string[]; readonly url: string } | undefined;
}

/** What communication and payment are told alike. */
export interface ServiceConfig extends RegisteredConfig {
  /** Path of a file for `readVaultKeys`. */
  readonly vaultKeysFile: string;
  /** Path. Undefined: there are no providers. */
  readonly providersFile: string | undefined;
  /** Where people and providers reach the gateway, without a slash at its end. */
  readonly publicUrl: string;
  /** Where webhooks of subjects may be. */
  readonly webhookAddresses: AllowedAddresses;
  /** Where providers may be. */
  readonly providerAddresses: AllowedAddresses;
}

type Parsed = Static<TObject<ReturnType<typeof registeredSettings>>>;

/** @throws Error naming the variable that is no URL, or lacks another. */
export function registeredConfig(parsed: Parsed): RegisteredConfig {
  const { ROLLCALL_GATEWAY_KEYS_URL: keysUrl } = parsed;
  requireUrl('ROLLCALL_GATEWAY_KEYS_URL', keysUrl);
  return {
    ...apiConfig(parsed),
    databaseUrl: parsed.ROLLCALL_DATABASE_URL,
    gateway: { jwksUrl: new URL(keysUrl), issuer: parsed.ROLLCALL_GATEWAY_ISSUER },
    registration: registrationOf(parsed),
  };
}

/** @throws Error naming the variable that is no URL, or lacks another. */
export function serviceConfig(parsed: Static<TObject<ReturnType<typeof serviceSettings>>>): ServiceConfig {
  const { ROLLCALL_PUBLIC_URL: publicUrl } = parsed;
  requireUrl('ROLLCALL_PUBLIC_URL', publicUrl);
  return {
    ...registeredConfig(parsed),
    vaultKeysFile: parsed.ROLLCALL_VAULT_KEYS_FILE,
    providersFile: parsed.ROLLCALL_PROVIDERS_FILE,
    publicUrl: publicUrl.replace(/\/+$/, ''),
    webhookAddresses: parsed.ROLLCALL_WEBHOOK_ADDRESSES,
    providerAddresses: parsed.ROLLCALL_PROVIDER_ADDRESSES,
  };
}

function registrationOf({ ROLLCALL_REGISTRY_URLS: urls, ...parsed }: Parsed) {
  if (urls === undefined) return undefined;
  const url = parsed.ROLLCALL_SERVICE_URL ?? urlOfPod(parsed);
  if (url === undefined)
    throw new Error('Invalid configuration:\n  ROLLCALL_SERVICE_URL is required with ROLLCALL_REGISTRY_URLS');
  const registries = urls.split(',').map((each) => each.trim());
  for (const each of registries) requireUrl('ROLLCALL_REGISTRY_URLS', each);
  requireUrl('ROLLCALL_SERVICE_URL', url);
  return { registries, url };
}

function urlOfPod({
  ROLLCALL_POD_IP: address,
  ROLLCALL_PORT: port,
}: Pick<Parsed, 'ROLLCALL_POD_IP' | 'ROLLCALL_PORT'>) {
  if (address === undefined) return undefined;
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

function requireUrl(name: string, url: string): void {
  const fault = httpUrlFault(url);
  if (fault !== undefined) throw new Error(`Invalid configuration:\n  ${name} ${fault}`);
}
