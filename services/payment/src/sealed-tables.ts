import type { SealedTable } from '@rollcall/platform/postgres/resealing.ts';
import type { BlindIndex } from '@rollcall/platform/vault.ts';
import { customerContext } from './billing/store/customer-rows.ts';
import { methodContext } from './billing/store/methods.ts';
import { invoiceContext } from './billing/store/sealed-invoices.ts';
import { subscriptionContext } from './billing/store/subscription-metadata.ts';
import { errandContext } from './errands/queue.ts';
import type { Payment } from './payments/domain/payments.ts';
import { notificationContext } from './payments/store/notifications.ts';
import { foldedEmail, noteContext, paymentContext, refundContext } from './payments/store/payment-rows.ts';

/** Where the vault's seals are. Links to invoices carry one besides. */
export function sealedTables(index: (purpose: string) => BlindIndex): readonly SealedTable[] {
  return [
    {
      table: 'payments',
      sealed: { sealed: paymentContext },
      indexes: [
        { column: 'email_index', index: index('payer email'), of: 'sealed', textOf: payerOf },
        { column: 'method_index', index: index('stored method'), of: 'sealed', textOf: methodOf },
      ],
    },
    { table: 'errands', sealed: { sealed: errandContext } },
    { table: 'payment_notes', sealed: { sealed: noteContext } },
    { table: 'refunds', sealed: { sealed: refundContext } },
    { table: 'notifications', sealed: { sealed: notificationContext } },
    {
      table: 'customers',
      sealed: { sealed: customerContext },
      indexes: [{ column: 'email_index', index: index('customer email'), of: 'sealed', textOf: customerOf }],
    },
    { table: 'subscriptions', sealed: { sealed: subscriptionContext } },
    { table: 'invoices', sealed: { sealed: invoiceContext } },
    { table: 'credit_notes', sealed: { sealed: invoiceContext } },
    {
      table: 'payment_methods',
      sealed: { sealed: methodContext },
      indexes: [
        {
          column: 'token_index',
          index: index('payment method'),
          of: 'sealed',
          textOf: (token) => token,
          uniqueWith: ['customer_id', 'provider'],
        },
      ],
    },
  ];
}

/** Undefined where the payer was erased. */
function payerOf(sealed: string): string | undefined {
  const { customerEmail }: Pick<Payment, 'customerEmail'> = JSON.parse(sealed);
  return customerEmail === '' ? undefined : foldedEmail(customerEmail);
}

function methodOf(sealed: string): string | undefined {
  const { method }: Pick<Payment, 'method'> = JSON.parse(sealed);
  return method?.token;
}

/** Undefined where the customer was erased. */
function customerOf(sealed: string): string | undefined {
  const { email }: { readonly email: string } = JSON.parse(sealed);
  return email === '' ? undefined : foldedEmail(email);
}
