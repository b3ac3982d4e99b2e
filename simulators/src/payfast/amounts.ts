const RAND = /^(0|[1-9]\d{0,9})\.(\d{2})$/;

/** Cents of an amount of rand with two places, such as `149.50`; undefined for any other text. */
export function parseRand(text: string): bigint | undefined {
  const [, rand, cents] = RAND.exec(text) ?? [];
  return rand === undefined || cents === undefined ? undefined : BigInt(rand + cents);
}

/** An amount in cents as rand with two places, such as `-5.75`. */
export function formatRand(cents: bigint): string {
  const digits = (cents < 0n ? -cents : cents).toString().padStart(3, '0');
  return `${cents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** What the merchant pays for a payment, in cents: 3.2 % and R2.00, and 15 % tax on both; at most all of it. */
export function feeOf(gross: bigint): bigint {
  const fee = ((gross * 32n + 200_000n) * 115n) / 100_000n;
  return fee < gross ? fee : gross;
}
