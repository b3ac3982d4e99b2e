import { isCurrency, minorUnitDigits } from '../../domain/money.ts';
import type { AmountRejection, Money } from '../../domain/ports.ts';

/** Currencies that Stripe writes in whole units (docs.stripe.com/currencies, "Zero-decimal"). */
const ZERO_DECIMAL: ReadonlySet<string> = new Set(
  'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' '),
);
/** Those of three decimals, the last of which has to be 0. */
const THREE_DECIMAL: ReadonlySet<string> = new Set('BHD JOD KWD OMR TND'.split(' '));
/** Those without decimals that Stripe writes with two, which have to be 00. */
const WHOLE_IN_TWO_DECIMALS: ReadonlySet<string> = new Set(['ISK', 'UGX']);

/** How Stripe writes amounts of a currency: `units` digits, and a multiple of so many of them. */
interface Form {
  readonly digits: number;
  readonly multipleOf: bigint;
}

function formOf(currency: string): Form | undefined {
  if (!isCurrency(currency)) return undefined;
  if (ZERO_DECIMAL.has(currency)) return { digits: 0, multipleOf: 1n };
  if (THREE_DECIMAL.has(currency)) return { digits: 3, multipleOf: 10n };
  if (WHOLE_IN_TWO_DECIMALS.has(currency)) return { digits: 2, multipleOf: 100n };
  return minorUnitDigits(currency) === 2 ? { digits: 2, multipleOf: 1n } : undefined;
}

/** Pure. Why Stripe cannot take an amount; empty: it can. */
export function rejectionsOf({ amount, currency }: Money): readonly AmountRejection[] {
  const form = formOf(currency);
  if (form === undefined) return [{ code: 'CURRENCY_NOT_SUPPORTED', currencies: [] }];
  const [scaled, divisor] = scaledBy(amount, form.digits - minorUnitDigits(currency));
  const multipleOf = multipleInMinorUnits(form, currency);
  return scaled % divisor === 0n && (scaled / divisor) % form.multipleOf === 0n
    ? []
    : [{ code: 'AMOUNT_NOT_SUPPORTED', multipleOf }];
}

/**
 * Pure. An amount as Stripe's API has it.
 *
 * @throws RangeError where {@link rejectionsOf} says why.
 */
export function toStripeAmount(money: Money): number {
  const form = formOf(money.currency);
  if (form === undefined || rejectionsOf(money).length > 0) throw new RangeError('Stripe does not take the amount');
  const [scaled, divisor] = scaledBy(money.amount, form.digits - minorUnitDigits(money.currency));
  return Number(scaled / divisor);
}

/**
 * Pure. Money as Stripe's API has it, in minor units of ISO 4217; undefined for a currency that we
 * do not know, or a fraction of a minor unit.
 *
 * @param currency in lower case.
 */
export function fromStripeAmount(amount: number, currency: string): Money | undefined {
  const code = currency.toUpperCase();
  const form = formOf(code);
  if (form === undefined) return undefined;
  const [scaled, divisor] = scaledBy(BigInt(amount), minorUnitDigits(code) - form.digits);
  return scaled % divisor === 0n ? { amount: scaled / divisor, currency: code } : undefined;
}

/** Multiplied by ten to the power, as a quotient. */
function scaledBy(amount: bigint, power: number): readonly [dividend: bigint, divisor: bigint] {
  return power >= 0 ? [amount * 10n ** BigInt(power), 1n] : [amount, 10n ** BigInt(-power)];
}

function multipleInMinorUnits({ digits, multipleOf }: Form, currency: string): bigint {
  const [scaled, divisor] = scaledBy(multipleOf, minorUnitDigits(currency) - digits);
  return scaled < divisor ? 1n : scaled / divisor;
}
