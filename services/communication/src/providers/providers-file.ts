import { readFile } from 'node:fs/promises';
import { parseEmailAddress } from '@rollcall/platform/mail-address.ts';
import { type AllowedAddresses, addressRules, isRefusedAddress } from '@rollcall/platform/outbound/address-rules.ts';
import { providerBaseUrl } from '@rollcall/platform/outbound/base-url.ts';
import { CONTROL } from '@rollcall/platform/text-rules.ts';
import { type CountryCode, isSupportedCountry } from 'libphonenumber-js/max';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';
import type { Channel } from '../domain/messages.ts';
import type { Mailbox } from '../domain/ports.ts';
import { keyFaults } from './provider-keys.ts';
import { kindsOf, type ProviderKind, type ProviderSettings, providerSchemas } from './provider-settings.ts';

/** The providers of one replica, by channel. */
export interface ProvidersConfig {
  readonly email: { readonly from: Mailbox | undefined; readonly providers: readonly ProviderSettings[] };
  readonly sms: {
    readonly region: CountryCode;
    /** By country of ISO 3166-1, the names in their order. */
    readonly byCountry: Readonly<Record<string, readonly string[]>>;
    readonly providers: readonly ProviderSettings[];
  };
  readonly push: { readonly providers: readonly ProviderSettings[] };
}

const DEFAULT_REGION = 'ZA';

/** What there is without a file. */
const noProviders: ProvidersConfig = {
  email: { from: undefined, providers: [] },
  sms: { region: DEFAULT_REGION, byCountry: {}, providers: [] },
  push: { providers: [] },
};

/** Each is checked by the schema of its kind, which says more than one for all would. */
const entries = Type.Array(Type.Object({ kind: Type.String(), name: Type.String() }, { additionalProperties: true }), {
  maxItems: 20,
  default: [],
});
const strict = { additionalProperties: false } as const;
const name = Type.Optional(Type.String({ maxLength: 128, pattern: `^[^${CONTROL}]*$` }));
const schema = Type.Object(
  {
    email: Type.Optional(
      Type.Object(
        { from: Type.Optional(Type.Object({ address: Type.String(), name }, strict)), providers: entries },
        strict,
      ),
    ),
    sms: Type.Optional(
      Type.Object(
        {
          region: Type.Refine(Type.String({ default: DEFAULT_REGION }), isSupportedCountry, () => 'must be a country'),
          byCountry: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String(), { minItems: 1 }))),
          providers: entries,
        },
        strict,
      ),
    ),
    push: Type.Optional(Type.Object({ providers: entries }, strict)),
  },
  strict,
);

type File = Static<typeof schema>;

/** Where providers may be. */
export interface ProvidersFileRules {
  readonly addresses: AllowedAddresses;
}

/** @throws as {@link parseProviders}, or where the file cannot be read. */
export async function readProviders(file: string | undefined, rules: ProvidersFileRules): Promise<ProvidersConfig> {
  return file === undefined ? noProviders : parseProviders(await readFile(file, 'utf8'), rules);
}

/**
 * Reads the providers of all channels, from YAML.
 *
 * @throws Error naming every fault, and no value: credentials are among them.
 */
export function parseProviders(text: string, rules: ProvidersFileRules): ProvidersConfig {
  const given = Value.Default(schema, parsedYaml(text) ?? {});
  if (!Value.Check(schema, given)) throw notValid(faultsOf(schema, given, ''));
  const faults: string[] = [];
  const email = settingsOf('email', given.email?.providers, faults);
  const sms = settingsOf('sms', given.sms?.providers, faults);
  const push = settingsOf('push', given.push?.providers, faults);
  const all = [...email, ...sms, ...push];
  faults.push(
    ...twice(all),
    ...all.flatMap((entry) => [...urlFaults(entry, rules), ...keyFaults(entry)].map((fault) => named(entry, fault))),
    ...countryFaults(given, sms),
  );
  const from = fromOf(given, faults);
  if (faults.length > 0) throw notValid(faults);
  const { region = DEFAULT_REGION, byCountry = {} } = given.sms ?? {};
  return {
    email: { from, providers: email },
    sms: { region: isSupportedCountry(region) ? region : DEFAULT_REGION, byCountry, providers: sms },
    push: { providers: push },
  };
}

/** YAML's own errors show the line that is wrong, which may have a secret. */
function parsedYaml(text: string): unknown {
  try {
    return parse(text);
  } catch {
    throw notValid(['the file is not YAML']);
  }
}

function notValid(faults: readonly string[]): Error {
  return new Error(`The providers are not valid:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
}

function faultsOf(of: typeof schema | (typeof providerSchemas)[ProviderKind], value: unknown, at: string): string[] {
  const faults = Value.Errors(of, value).map(({ instancePath, message, params }) => {
    const names = 'additionalProperties' in params ? `: ${params.additionalProperties.join(', ')}` : '';
    return `${at}${instancePath === '' && at === '' ? '/' : instancePath} ${message}${names}`;
  });
  return faults.filter((fault) => !fault.endsWith('schema is false'));
}

function settingsOf(channel: Channel, given: readonly unknown[] = [], faults: string[]): readonly ProviderSettings[] {
  return given.flatMap((entry, index) => {
    const at = `/${channel}/providers/${index}`;
    const kind = kindsOf[channel].find((each) => isObject(entry) && entry['kind'] === each);
    if (kind === undefined) {
      faults.push(`${at}/kind must be one of ${kindsOf[channel].join(', ')}`);
      return [];
    }
    const settings = Value.Default(providerSchemas[kind], entry);
    if (isSettings(kind, settings)) return [settings];
    faults.push(...faultsOf(providerSchemas[kind], settings, at));
    return [];
  });
}

function isSettings(kind: ProviderKind, value: unknown): value is ProviderSettings {
  return Value.Check(providerSchemas[kind], value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function twice(all: readonly ProviderSettings[]): readonly string[] {
  const names = all.map((entry) => entry.name);
  const repeated = names.filter((each, index) => names.indexOf(each) !== index);
  return [...new Set(repeated)].map((each) => `two providers have the name ${each}`);
}

function named(entry: ProviderSettings, fault: string): string {
  return `the provider ${entry.name}: ${fault}`;
}

function urlFaults(entry: ProviderSettings, { addresses }: ProvidersFileRules): readonly string[] {
  const urls = [...('baseUrl' in entry ? [entry.baseUrl] : []), ...('tokenUri' in entry ? [entry.tokenUri] : [])];
  return urls.flatMap((each) => {
    const fault = urlFault(each, addresses);
    return fault === undefined ? [] : [fault];
  });
}

function urlFault(url: string, addresses: AllowedAddresses): string | undefined {
  try {
    const { hostname } = providerBaseUrl(url, addresses === 'public' || addresses === 'cluster');
    return isRefusedAddress(hostname, addressRules[addresses])
      ? 'the base URL leads to an address that is not allowed (ROLLCALL_PROVIDER_ADDRESSES)'
      : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : 'the base URL is not valid';
  }
}

function countryFaults({ sms }: File, providers: readonly ProviderSettings[]): readonly string[] {
  const known = new Set(providers.map((entry) => entry.name));
  return Object.entries(sms?.byCountry ?? {}).flatMap(([country, names]) => [
    ...(isSupportedCountry(country) ? [] : [`/sms/byCountry/${country} must be a country of ISO 3166-1`]),
    ...names
      .filter((each) => !known.has(each))
      .map((each) => `/sms/byCountry/${country} names ${each}, which is not there`),
  ]);
}

function fromOf({ email }: File, faults: string[]): Mailbox | undefined {
  const from = email?.from;
  if (from === undefined) {
    if ((email?.providers.length ?? 0) > 0) faults.push('/email/from is required where there are providers');
    return undefined;
  }
  const parsed = parseEmailAddress(from.address);
  if ('fault' in parsed) {
    faults.push(`/email/from/address ${parsed.fault}`);
    return undefined;
  }
  return { address: parsed.value, ...(from.name !== undefined && { name: from.name }) };
}
