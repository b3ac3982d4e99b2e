import { type ErrorCatalogue, type ErrorKind, ServiceError } from '@rollcall/platform/errors.ts';

/** What payment refuses or cannot do, beside what communication refuses alike (platform/src/common-errors.ts). */
export const errorCatalogue = {
  CONFLICT: { status: 409, message: 'Its state does not allow that; details.status has it' },
  CUSTOMER_NOT_FOUND: { status: 422, message: 'There is no such customer, or it belongs to another subject' },
  INVOICE_TOTAL_NOT_ALLOWED: { status: 422, message: 'The total of an invoice is 0 to 10^12 minor units' },
  TAX_INVOICE_INCOMPLETE: {
    status: 422,
    message: 'A tax invoice needs what details.missing names; the customer or the settings of the seller lack it',
  },
  CREDIT_EXCEEDS_INVOICE: { status: 422, message: 'That is more than what is left of the line; details.left has it' },
  NO_SELLER: { status: 503, message: 'The settings name no seller for the caller, so no invoice can be issued' },
} as const satisfies ErrorCatalogue;

type ErrorCode = keyof typeof errorCatalogue;

/** An error of payment's own. */
export function paymentError(
  code: ErrorCode,
  options?: ConstructorParameters<typeof ServiceError>[2],
): ServiceError<ErrorCode> {
  return new ServiceError(code, errorCatalogue[code], options);
}

/** What a route refuses, for the OpenAPI document. */
export function refusals(...codes: readonly ErrorCode[]): readonly ErrorKind[] {
  return codes.map((code) => errorCatalogue[code]);
}
