/** `grpc-timeout` (grpc/doc/PROTOCOL-HTTP2.md): at most eight digits and a unit. */
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;

/** Milliseconds that a unit stands for, from the coarsest. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1000],
  ['m', 1],
  ['u', 1e-3],
  ['n', 1e-6],
]);

const MAX_DIGITS = 99_999_999;

/** @returns milliseconds, or undefined for what is no timeout. */
export function parseTimeout(text: string): number | undefined {
  const [, digits, unit = ''] = TIMEOUT.exec(text) ?? [];
  const unitMs = UNITS.get(unit);
  return digits === undefined || unitMs === undefined ? undefined : Number(digits) * unitMs;
}

/**
 * In the finest unit that is no finer than a microsecond and can hold it, rounded down.
 *
 * @param ms more than 0.
 */
export function formatTimeout(ms: number): string {
  for (const unit of ['u', 'm', 'S', 'M']) {
    const amount = Math.floor(ms / (UNITS.get(unit) ?? 1));
    if (amount <= MAX_DIGITS) return `${Math.max(amount, 1)}${unit}`;
  }
  return `${Math.min(Math.floor(ms / 3_600_000), MAX_DIGITS)}H`;
}
