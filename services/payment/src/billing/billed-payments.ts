import type { PaymentStore } from '../payments/domain/payments.ts';
import { paymentUrlOf, type Taking } from '../payments/domain/take.ts';
import type { BilledPayments } from './domain/invoice-payments.ts';

interface BilledPaymentsDeps {
  readonly taking: Taking;
  readonly payments: PaymentStore;
  readonly publicUrl: string;
}

/** Payments as billing needs them. */
export function createBilledPayments({ taking, payments, publicUrl }: BilledPaymentsDeps): BilledPayments {
  return {
    providerOf: (name) => taking.providerOf(name),
    async find(id) {
      const payment = await payments.find(id, undefined);
      return payment && { id, url: paymentUrlOf(publicUrl, payment) };
    },
    async open(terms) {
      const payment = await taking.open({ ...terms, metadata: {} });
      return { id: payment.id, url: paymentUrlOf(publicUrl, payment) };
    },
    charge: (terms) => taking.charge({ ...terms, metadata: {} }),
  };
}
