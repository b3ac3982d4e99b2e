import { StripeError } from './errors.ts';

/** Stripe's own list, not ISO 4217's: its ISK and UGX have two places that must be 00. */
const ZERO_DECIMAL = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '));
const THREE_DECIMAL = new Set('bhd iqd jod kwd lyd omr tnd'.split(' '));
const WHOLE_UNITS = new Set(['isk', 'ugx']);
const KNOWN = new Set(Intl.supportedValuesOf('currency').map((code) => code.toLowerCase()));
/** The least that a charge may be, in minor units, where Stripe publishes one. */
const MINIMUM: Readonly<Record<string, number>> = { usd: 50, eur: 50, gbp: 30, jpy: 50, chf: 50, aud: 50, cad: 50 };
/** Eight digits. */
const MAXIMUM = 99_999_999;

/** How many places an amount of the currency has at Stripe. */
export function decimalsOf(currency: string): 0 | 2 | 3 {
  if (ZERO_DECIMAL.has(currency)) return 0;
  return THREE_DECIMAL.has(currency) ? 3 : 2;
}

/** @returns the currency in lower case. @throws StripeError where there is none. */
export function parseCurrency(text: string, param: string): string {
  const currency = text.toLowerCase();
  if (KNOWN.has(currency)) return currency;
  throw new StripeError(400, {
    type: 'invalid_request_error',
    message: `Invalid currency: ${currency}.`,
    param,
  });
}

/**
 * An amount of minor units from a parameter. Eight digits at most, so that a number holds it.
 *
 * @throws StripeError where the currency does not have such an amount.
 */
export function parseAmount(text: string, currency: string, param: string): number {
  const amount = Number(text);
  const refuse = (code: string, message: string): StripeError =>
    new StripeError(400, { type: 'invalid_request_error', code, message, param });
  if (!/^\d+$/.test(text)) throw refuse('parameter_invalid_integer', `Invalid integer: ${text}`);
  if (amount > MAXIMUM) throw refuse('amount_too_large', `Amount must be no more than ${MAXIMUM}`);
  if (THREE_DECIMAL.has(currency) && amount % 10 !== 0)
    throw refuse('invalid_amount', `Amounts in ${currency} must be divisible by 10`);
  if (WHOLE_UNITS.has(currency) && amount % 100 !== 0)
    throw refuse('invalid_amount', `Amounts in ${currency} must be divisible by 100`);
  return amount;
}

/** @throws StripeError where so little cannot be charged. */
export function assertChargeable(amount: number, currency: string, param: string): void {
  const least = MINIMUM[currency] ?? 1;
  if (amount >= least) return;
  throw new StripeError(400, {
    type: 'invalid_request_error',
    code: 'amount_too_small',
    message: `Amount must be at least ${least} ${currency}`,
    param,
  });
}
