import { type ErrorCatalogue, type ErrorKind, ServiceError } from '@rollcall/platform/errors.ts';

/** What payment refuses or cannot do, beside what communication refuses alike (platform/src/common-errors.ts). */
export const errorCatalogue = {
  CONFLICT: { status: 409, message: 'Its state does not allow that; details.status has it' },
  PAYMENT_FAILED: { status: 402, message: 'The provider refuses the payment; details.reason says why' },
  PROVIDER_NOT_CONFIGURED: {
    status: 422,
    message: 'The provider has no settings here; details.providers has those that there are',
  },
  CURRENCY_NOT_SUPPORTED: {
    status: 422,
    message: 'The provider does not take the currency; details.currencies has those that it takes',
  },
  AMOUNT_TOO_SMALL: { status: 422, message: 'The provider does not take so little; details.minimum is its least' },
  AMOUNT_NOT_SUPPORTED: {
    status: 422,
    message: 'The provider takes no such amount; details.multipleOf has to divide it',
  },
  REFUND_EXCEEDS_PAYMENT: {
    status: 422,
    message: 'The refund is more than what is left of the payment; details.left is what is',
  },
  REFUND_REFUSED: { status: 422, message: 'The provider refuses the refund; details.reason says why' },
  FORGED: { status: 401, message: 'The notification is not signed by the provider' },
  MALFORMED: { status: 400, message: 'The notification cannot be read' },
  NOT_VERIFIED: {
    status: 503,
    message: 'The provider cannot be asked whether the notification is its own; send it again',
  },
  SETTLEMENT_NOT_LISTED: { status: 422, message: 'The provider has no list of what it settled' },
  PROVIDER_ERROR: {
    status: 502,
    message:
      'The provider cannot be reached, or does not let us in. Try again with the same Idempotency-Key; a payment of details.paymentId stays, and gets its paymentUrl once the provider answers',
  },
  CUSTOMER_NOT_FOUND: { status: 422, message: 'There is no such customer, or it belongs to another subject' },
  CUSTOMER_IN_USE: {
    status: 409,
    message: 'Something of the customer or payer is not over; details.open names it, up to ten of a kind',
  },
  CUSTOMER_ERASED: { status: 422, message: 'The customer was erased: nothing is made for it any more' },
  INVOICE_TOTAL_NOT_ALLOWED: {
    status: 422,
    message:
      'With its tax an invoice, a line of it or a period of a plan is at most 10^12 minor units, and no total is less than 0',
  },
  TAX_INVOICE_INCOMPLETE: {
    status: 422,
    message: 'A tax invoice needs what details.missing names; the customer or the settings of the seller lack it',
  },
  CREDIT_EXCEEDS_INVOICE: { status: 422, message: 'That is more than what is left of the line; details.left has it' },
  PLAN_NOT_FOUND: { status: 422, message: 'There is no such plan, or it belongs to another subject' },
  PLAN_INACTIVE: { status: 422, message: 'The plan is not active: no new subscription may have it' },
  PLAN_CURRENCY_DIFFERS: { status: 422, message: 'The plan has another currency; make a new subscription' },
  METHOD_NOT_FOUND: { status: 422, message: 'The customer has no such payment method that can be charged' },
  COLLECTION_NOT_SUPPORTED: {
    status: 422,
    message: 'The provider keeps no cards; have invoices sent (`collection: send_invoice`)',
  },
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
