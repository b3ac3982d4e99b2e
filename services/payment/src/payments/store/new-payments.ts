import { randomBytes } from 'node:crypto';
import { joined } from '@rollcall/platform/postgres/joined.ts';
import { inTransaction } from '@rollcall/platform/postgres/pool.ts';
import type { Payment, PaymentTerms } from '../domain/payments.ts';
import { pageTokenHash, sealedColumns } from './payment-rows.ts';
import { eventStatement, type PaymentTableDeps } from './write-payment.ts';

const PAGE_TOKEN_BYTES = 32;

/**
 * With its history and event, in one statement.
 *
 * @returns undefined where there is one that has the id.
 */
export async function insertPayment(
  deps: PaymentTableDeps,
  terms: PaymentTerms,
  expiresAt: Date,
): Promise<Payment | undefined> {
  const payment = newPayment(terms, deps.clock.now(), expiresAt);
  const { id, subject, provider, purpose, money, state, pageToken, customerId, invoiceId, createdAt } = payment;
  const { sealed, emailIndex, methodIndex } = sealedColumns(deps, id, payment);
  const made = {
    name: 'payment',
    text: `INSERT INTO payments (id, subject, provider, purpose, amount, currency, state, sealed, email_index,
        method_index, page_token_hash, customer_id, invoice_id, expires_at, due_at, created_at, updated_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15, $15)
      ON CONFLICT (id) DO NOTHING RETURNING id, state`,
    values: [
      id,
      subject,
      provider,
      purpose,
      money.amount.toString(),
      money.currency,
      state,
      sealed,
      emailIndex,
      methodIndex,
      pageTokenHash(pageToken),
      customerId,
      invoiceId,
      expiresAt,
      createdAt,
    ],
  };
  const history = {
    name: 'history',
    text: `INSERT INTO payment_events (payment_id, event, source, to_state) SELECT id, 'created', 'caller', state FROM payment`,
    values: [],
  };
  const told = eventStatement(deps.recordEvents, payment, 'created');
  const statement = joined('new payment', [made, history, told], 'SELECT FROM payment');
  if (customerId === undefined) return (await deps.pool().query(statement)).rowCount === 1 ? payment : undefined;
  return inTransaction(deps.pool(), async (client) => {
    const { rowCount } = await client.query(statement);
    if (rowCount !== 1) return undefined;
    await deps.onMade(client, terms);
    return payment;
  });
}

function newPayment(terms: PaymentTerms, createdAt: Date, expiresAt: Date): Payment {
  return {
    ...terms,
    state: 'pending',
    reason: undefined,
    balance: { captured: 0n, refunded: 0n, reserved: 0n },
    pageToken: randomBytes(PAGE_TOKEN_BYTES).toString('base64url'),
    redirect: undefined,
    checkoutRef: undefined,
    chargeRef: undefined,
    calledAt: undefined,
    processingAt: undefined,
    decision: undefined,
    lookUps: 0,
    lastLookUpAt: undefined,
    expiresAt,
    createdAt,
    updatedAt: createdAt,
  };
}
