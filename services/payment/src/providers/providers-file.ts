import { readFile } from 'node:fs/promises';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { providerBaseUrl } from '@rollcall/platform/outbound/base-url.ts';
import type { Resolve } from '@rollcall/platform/outbound/lookups.ts';
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';
import type { PaymentProvider, ProviderName } from '../domain/ports.ts';
import type { Providers } from '../payments/domain/take.ts';
import type { Calls } from './call.ts';
import { createPayFast } from './payfast/payfast.ts';
import { createSandbox, type SandboxSettings } from './sandbox.ts';
import { createStripe } from './stripe/stripe.ts';
import { createYoco } from './yoco/yoco.ts';

const Text = Type.String({ minLength: 1, maxLength: 1024 });
const WebhookSecrets = Type.Array(Type.String({ pattern: '^whsec_.+$' }), { minItems: 1, maxItems: 10 });

const PayFast = strict({
  merchantId: Text,
  merchantKey: Text,
  passphrase: Text,
  siteUrl: Type.Optional(Text),
  apiUrl: Type.Optional(Text),
  isTest: Type.Optional(Type.Boolean()),
  sources: Type.Optional(Type.Array(Text, { maxItems: 100 })),
});
const Yoco = strict({
  secretKey: Type.String({ pattern: '^sk_(?:live|test)_.+$' }),
  webhookSecrets: WebhookSecrets,
  apiUrl: Type.Optional(Text),
});
const Stripe = strict({
  secretKey: Type.String({ pattern: '^[sr]k_(?:live|test)_.+$' }),
  webhookSecrets: WebhookSecrets,
  apiUrl: Type.Optional(Text),
});
const Sandbox = strict({ secret: Type.String({ pattern: '^whsec_.+$' }) });

const schema = strict({
  default: Type.Optional(Type.Enum(['payfast', 'yoco', 'stripe', 'sandbox'])),
  providers: strict({
    payfast: Type.Optional(PayFast),
    yoco: Type.Optional(Yoco),
    stripe: Type.Optional(Stripe),
    sandbox: Type.Optional(Sandbox),
  }),
});

export interface ProvidersDeps extends Calls {
  /** No provider is in the sandbox, and all are asked by https. */
  readonly isProduction: boolean;
  /** Where providers reach the gateway, without a slash at its end. */
  readonly publicUrl: string;
  /** Of the names of PayFast's servers. */
  readonly resolve: Resolve;
}

/** What a file of providers makes. */
export interface ConfiguredProviders extends Providers {
  /** Of the sandbox, whose page is ours. */
  readonly sandbox: SandboxSettings | undefined;
}

/** Without a file there is no provider. */
export const noProviders: ConfiguredProviders = {
  names: [],
  default: undefined,
  sandbox: undefined,
  find: () => undefined,
};

/**
 * Reads the providers of payments and their credentials (YAML).
 *
 * @throws Error naming every fault, and nothing of what the file holds.
 */
export async function readProviders(file: string, deps: ProvidersDeps): Promise<ConfiguredProviders> {
  return parseProviders(await readFile(file, 'utf8'), deps);
}

/** @throws as {@link readProviders}. */
export function parseProviders(text: string, deps: ProvidersDeps): ConfiguredProviders {
  const value = parsed(text);
  if (!Value.Check(schema, value)) {
    throw faulty(Value.Errors(schema, value).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`));
  }
  const faults: string[] = [];
  const made = new Map<ProviderName, PaymentProvider>();
  const { payfast, yoco, stripe, sandbox } = value.providers;
  const makers: Readonly<Record<ProviderName, (() => PaymentProvider) | undefined>> = {
    payfast: payfast && (() => payFastOf(payfast, deps)),
    yoco: yoco && (() => createYoco({ ...deps, settings: { ...yoco, apiUrl: urlOf(deps, yoco.apiUrl, YOCO_URL) } })),
    stripe:
      stripe &&
      (() => createStripe({ ...deps, settings: { ...stripe, apiUrl: urlOf(deps, stripe.apiUrl, STRIPE_URL) } })),
    sandbox: sandbox && (() => createSandbox(sandboxOf(sandbox, deps), deps.clock)),
  };
  for (const name of ['payfast', 'yoco', 'stripe', 'sandbox'] as const) {
    try {
      const provider = makers[name]?.();
      if (provider !== undefined) made.set(name, provider);
    } catch (error) {
      faults.push(`/providers/${name} ${errorMessage(error)}`);
    }
  }
  const { default: named } = value;
  if (named !== undefined && value.providers[named] === undefined) faults.push('/default has no settings');
  if (faults.length > 0) throw faulty(faults);
  const names = [...made.keys()];
  return {
    names,
    default: named ?? (names.length === 1 ? names[0] : undefined),
    sandbox: sandbox && sandboxOf(sandbox, deps),
    find: (name) => made.get(name),
  };
}

const YOCO_URL = 'https://payments.yoco.com/api';
const STRIPE_URL = 'https://api.stripe.com';
const PAYFAST = {
  live: { site: 'https://www.payfast.co.za', api: 'https://api.payfast.co.za' },
  test: { site: 'https://sandbox.payfast.co.za', api: 'https://api.payfast.co.za' },
} as const;

function payFastOf(settings: Static<typeof PayFast>, deps: ProvidersDeps): PaymentProvider {
  const { siteUrl, apiUrl, isTest = false, sources = [], ...credentials } = settings;
  const urls = PAYFAST[isTest ? 'test' : 'live'];
  return createPayFast({
    ...deps,
    settings: {
      ...credentials,
      isTest,
      sources,
      siteUrl: urlOf(deps, siteUrl, urls.site),
      apiUrl: urlOf(deps, apiUrl, urls.api),
      notifyUrl: `${deps.publicUrl}/api/v1/payment/notifications/payfast`,
    },
  });
}

function sandboxOf({ secret }: Static<typeof Sandbox>, { isProduction }: ProvidersDeps): SandboxSettings {
  return { secret, isProduction };
}

function urlOf({ isProduction }: ProvidersDeps, url: string | undefined, otherwise: string): URL {
  return providerBaseUrl(url ?? otherwise, isProduction);
}

function strict<Properties extends TProperties>(properties: Properties): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false });
}

/** YAML's own errors show the line that is wrong, which may have a credential. */
function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    throw faulty(['the file is not YAML']);
  }
}

function faulty(faults: readonly string[]): Error {
  return new Error(`The providers are not valid: ${faults.join('; ')}`);
}
