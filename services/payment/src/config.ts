import { type Environment, parseConfig } from '@rollcall/platform/process/config.ts';
import { clientConfig, clientSettings } from '@rollcall/platform/service/gateway-client.ts';
import { serviceConfig, serviceSettings } from '@rollcall/platform/service/settings.ts';
import { Type } from 'typebox';

const schema = Type.Object({
  ...serviceSettings(3004),
  ROLLCALL_TOKEN_AUDIENCE: Type.String({
    minLength: 1,
    default: 'rollcall',
    description: "Of the gateway's access tokens, which are credentials here, too",
  }),
  ROLLCALL_SELLERS_FILE: Type.Optional(
    Type.String({ minLength: 1, description: 'Who issues invoices, in YAML; absent: no invoice can be issued' }),
  ),
  ...clientSettings("Payment's client at the gateway, for mails; absent: none are sent"),
  ROLLCALL_MODE: Type.Enum(['production', 'trial'], {
    default: 'production',
    description: 'In production there is no sandbox, and providers are called by https',
  }),
  ROLLCALL_PROVIDER_TIMEOUT_SECONDS: Type.Number({
    minimum: 0.1,
    // An effect may ask three times, and has to end before its claim of 30 s does.
    maximum: 9,
    default: 8,
    description: 'From a call of a provider to the last byte of its answer',
  }),
  ROLLCALL_LATE_CAPTURES: Type.Enum(['refund', 'review'], {
    default: 'review',
    description: 'What becomes of money for a payment that had failed, expired or was cancelled',
  }),
});

/** Settings of the payment process. */
export type PaymentConfig = ReturnType<typeof paymentConfig>;

/** @throws Error naming every faulty variable. */
export function paymentConfig(environment: Environment) {
  const parsed = parseConfig(schema, environment);
  return {
    ...serviceConfig(parsed),
    tokenAudience: parsed.ROLLCALL_TOKEN_AUDIENCE,
    client: clientConfig(parsed),
    sellersFile: parsed.ROLLCALL_SELLERS_FILE,
    isProduction: parsed.ROLLCALL_MODE === 'production',
    providerTimeoutMs: parsed.ROLLCALL_PROVIDER_TIMEOUT_SECONDS * 1000,
    lateCapture: parsed.ROLLCALL_LATE_CAPTURES,
  };
}
