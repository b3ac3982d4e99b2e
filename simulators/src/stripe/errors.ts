import type { Charge, PaymentIntent } from './objects.ts';

/** `error` of an answer (docs.stripe.com/api/errors). */
export interface StripeErrorBody {
  readonly type: 'invalid_request_error' | 'card_error' | 'idempotency_error' | 'rate_limit_error' | 'api_error';
  readonly code?: string;
  readonly decline_code?: string;
  readonly message: string;
  readonly param?: string;
  readonly payment_intent?: PaymentIntent;
  readonly charge?: Charge['id'];
}

/** An answer that is an error, in Stripe's shape. */
export class StripeError extends Error {
  readonly status: number;
  readonly body: StripeErrorBody;

  constructor(status: number, body: StripeErrorBody) {
    super(body.message);
    this.name = 'StripeError';
    this.status = status;
    this.body = body;
  }
}

/** 404, as for an id of another account. */
export function noSuch(object: string, id: string, param = 'id'): StripeError {
  return new StripeError(404, {
    type: 'invalid_request_error',
    code: 'resource_missing',
    message: `No such ${object}: '${id}'`,
    param,
  });
}

/** 400 for a call that the object's state does not allow. */
export function unexpectedState(code: string, message: string): StripeError {
  return new StripeError(400, { type: 'invalid_request_error', code, message });
}

/** 400 for a parameter. */
export function invalid(message: string, param: string): StripeError {
  return new StripeError(400, { type: 'invalid_request_error', message, param });
}
