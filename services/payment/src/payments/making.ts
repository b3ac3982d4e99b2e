import type { Idempotency, OnceAnswer } from '@rollcall/platform/postgres/idempotency.ts';
import type { Static } from 'typebox';
import { type Refusal, refuseAll } from '../domain/refusals.ts';
import { emailOf } from '../schemas.ts';
import type { Taking } from './domain/take.ts';
import { type NewPayment, paymentAnswer } from './routes/schemas.ts';

export interface MakingDeps {
  readonly taking: Taking;
  readonly idempotency: Idempotency;
  /** Why a subject may have nothing made for a customer of billing, whatever the id is. */
  readonly customerRefusals: (id: string, subject: string) => Promise<readonly Refusal[]>;
  /** Base URL of our pages. */
  readonly publicUrl: string;
}

/** Who wants which payment, by whichever door. */
export interface PaymentRequest {
  readonly subject: string;
  /** Of idempotency. */
  readonly key: string | undefined;
  /** What paths of faults begin with: `body`, or `input` of a mutation. */
  readonly root: string;
  readonly body: Static<typeof NewPayment>;
}

/**
 * Makes a payment once: 201, or 202 where it is not known yet whether the provider has it.
 *
 * @throws ServiceError of keys, CUSTOMER_NOT_FOUND, CUSTOMER_ERASED, and those of {@link Taking.open}.
 */
export function makePayment(deps: MakingDeps, { subject, key, root, body }: PaymentRequest): Promise<OnceAnswer> {
  const { taking, customerRefusals, idempotency, publicUrl } = deps;
  return idempotency.once({ subject, operation: 'createPayment', key, request: body }, async (id) => {
    const { amount, currency, customerEmail: email, itemName = 'Payment', metadata = {}, ...terms } = body;
    const money = { amount: BigInt(amount), currency };
    const provider = taking.providerOf(terms.provider);
    refuseAll(
      [
        ...(terms.customerId === undefined ? [] : await customerRefusals(terms.customerId, subject)),
        ...('error' in provider ? [provider] : provider.refusalsOf(money, 'pay')),
      ],
      root,
    );
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
