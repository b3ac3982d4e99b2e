import { isUuid } from '@rollcall/platform/http/resources.ts';
import type { Idempotency, OnceAnswer } from '@rollcall/platform/postgres/idempotency.ts';
import type { Static } from 'typebox';
import { paymentError } from '../domain/errors.ts';
import { emailOf } from '../schemas.ts';
import type { Taking } from './domain/take.ts';
import { type NewPayment, paymentAnswer } from './routes/schemas.ts';

export interface MakingDeps {
  readonly taking: Taking;
  readonly idempotency: Idempotency;
  /** Base URL of our pages. */
  readonly publicUrl: string;
}

/** Who wants which payment, by whichever door. */
export interface PaymentRequest {
  readonly subject: string;
  /** Of idempotency. */
  readonly key: string | undefined;
  readonly body: Static<typeof NewPayment>;
}

/**
 * Makes a payment once: 201, or 202 where it is not known yet whether the provider has it.
 *
 * @throws ServiceError of keys, CUSTOMER_NOT_FOUND, CUSTOMER_ERASED, and those of {@link Taking.open}.
 */
export function makePayment(deps: MakingDeps, { subject, key, body }: PaymentRequest): Promise<OnceAnswer> {
  const { taking, idempotency, publicUrl } = deps;
  return idempotency.once({ subject, operation: 'createPayment', key, request: body }, async (id) => {
    const { amount, currency, customerEmail: email, itemName = 'Payment', metadata = {}, ...terms } = body;
    if (body.customerId !== undefined && !isUuid(body.customerId)) throw paymentError('CUSTOMER_NOT_FOUND');
    const money = { amount: BigInt(amount), currency };
    const payment = await taking.open({
      ...terms,
      id,
      subject,
      money,
      customerEmail: emailOf(email),
      itemName,
      metadata,
      purpose: 'pay',
    });
    const status = payment.redirect === undefined ? 202 : 201;
    return { status, location: `payments/${id}`, body: paymentAnswer(publicUrl, payment) };
  });
}
