import { isSettled } from '../domain/payment-states.ts';
import type { Payment, PaymentStore } from '../payments/domain/payments.ts';
import { paymentUrlOf, type Taking } from '../payments/domain/take.ts';
import type { BilledPayments } from './domain/invoice-payments.ts';

interface BilledPaymentsDeps {
  readonly taking: Taking;
  readonly payments: PaymentStore;
  readonly publicUrl: string;
}

/** Payments as billing needs them. */
export function createBilledPayments({ taking, payments, publicUrl }: BilledPaymentsDeps): BilledPayments {
  const billed = (payment: Payment) => {
    const { id, provider, purpose } = payment;
    return { id, provider, isByCheckout: purpose !== 'charge', url: paymentUrlOf(publicUrl, payment) };
  };
  return {
    providerOf: (name) => taking.providerOf(name),
    async find(id) {
      const payment = await payments.find(id, undefined);
      return payment && billed(payment);
    },
    async cancel(id) {
      if ((await payments.find(id, undefined)) === undefined) return;
      await payments.change(id, ({ payment: { state } }) =>
        isSettled(state) ? undefined : { event: 'cancel', source: 'caller' },
      );
    },
    open: async (terms) => billed(await taking.open({ ...terms, metadata: {} })),
    charge: (terms) => taking.charge({ ...terms, metadata: {} }),
  };
}
