import currencyCodes from 'currency-codes';

// Amounts are bigint in minor units of their currency, such as cents: 14950n of ZAR is R149.50.

/** The largest amount of a payment, an invoice or a price, in minor units (SERVICES: 1 to 10^12). */
export const LARGEST_AMOUNT = 10n ** 12n;

/** Codes from X on are metals, funds and tests, but for these, which four unions of states pay with. */
const TENDER_FROM_X = ['XAF', 'XCD', 'XOF', 'XPF'];

/** Digits behind the decimal point by currency. Intl has those of CLDR, which differ: IQD 0, not 3. */
const digitsByCurrency: ReadonlyMap<string, number> = new Map(
  currencyCodes.data
    .filter(({ code }) => !code.startsWith('X') || TENDER_FROM_X.includes(code))
    .map(({ code, digits }) => [code, digits]),
);

/** That one pays with. */
export const currencies: readonly string[] = [...digitsByCurrency.keys()];

/** Whether this is the code of a currency that one pays with, in capitals (ISO 4217). */
export function isCurrency(code: string): boolean {
  return digitsByCurrency.has(code);
}

/**
 * How many decimal digits the minor unit of a currency has: ZAR 2, JPY 0, KWD 3 (ISO 4217).
 *
 * @throws RangeError where `isCurrency` is false.
 */
export function minorUnitDigits(currency: string): number {
  const digits = digitsByCurrency.get(currency);
  if (digits === undefined) throw new RangeError('not a currency of ISO 4217');
  return digits;
}

/** Whether an amount may be charged, in minor units. */
export function isChargeable(amount: bigint): boolean {
  return amount >= 1n && amount <= LARGEST_AMOUNT;
}

/**
 * Reads a provider's decimal, such as `149.50` or `-5.75`, into minor units, digit by digit.
 *
 * @returns undefined for anything else: exponents, signs but minus, separators of thousands, and
 * fractions of a minor unit.
 * @throws RangeError where `isCurrency` is false.
 */
export function parseDecimal(text: string, currency: string): bigint | undefined {
  const digits = minorUnitDigits(currency);
  const [, minus, whole, fraction = ''] = /^(-?)(\d{1,15})(?:\.(\d{1,15}))?$/.exec(text) ?? [];
  if (minus === undefined || whole === undefined || /[1-9]/.test(fraction.slice(digits))) return undefined;
  const amount = BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0'));
  return minus === '' ? amount : -amount;
}

/**
 * An amount in minor units as a decimal with all digits of its currency: `149.50`, `9899`, `35.200`.
 *
 * @throws RangeError where `isCurrency` is false.
 */
export function formatDecimal(amount: bigint, currency: string): string {
  const digits = minorUnitDigits(currency);
  const text = absolute(amount)
    .toString()
    .padStart(digits + 1, '0');
  const whole = text.slice(0, text.length - digits);
  const fraction = digits === 0 ? '' : `.${text.slice(-digits)}`;
  return `${amount < 0n ? '-' : ''}${whole}${fraction}`;
}

/**
 * A quotient, rounded half away from zero: 5/2 is 3, -5/2 is -3. All rounding of money is this.
 *
 * @throws RangeError for a divisor that is not positive.
 */
export function divideRounded(dividend: bigint, divisor: bigint): bigint {
  if (divisor <= 0n) throw new RangeError('the divisor must be positive');
  const rounded = (2n * absolute(dividend) + divisor) / (2n * divisor);
  return dividend < 0n ? -rounded : rounded;
}

/**
 * Splits an amount by weights without losing a minor unit. What rounding down leaves over goes to
 * the first parts that it cut, one unit each. R100.00 by 1, 1, 1 is 3334, 3333, 3333.
 *
 * @returns as many parts as weights, whose sum is the amount.
 * @throws RangeError for a negative weight, or where all are zero.
 */
export function allocate(amount: bigint, weights: readonly bigint[]): readonly bigint[] {
  const sum = total(weights);
  if (sum === 0n || weights.some((weight) => weight < 0n)) throw new RangeError('weights must be positive');
  const unit = amount < 0n ? -1n : 1n;
  // Division of bigint is towards zero, so that what is left over has the sign of the amount.
  let left = amount - total(weights.map((weight) => (amount * weight) / sum));
  return weights.map((weight) => {
    const part = (amount * weight) / sum;
    if (left === 0n || part * sum === amount * weight) return part;
    left -= unit;
    return part + unit;
  });
}

/** The sum of amounts of one currency. */
export function total(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n);
}

function absolute(amount: bigint): bigint {
  return amount < 0n ? -amount : amount;
}
