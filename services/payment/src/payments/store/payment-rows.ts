import { createHash } from 'node:crypto';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import type { PaymentState } from '../../domain/payment-states.ts';
import type { ProviderName } from '../../domain/ports.ts';
import type { Decision, Payment } from '../domain/payments.ts';

/** Of the table `payments`. */
export interface PaymentRow {
  readonly id: string;
  readonly subject: string;
  readonly provider: ProviderName;
  readonly purpose: Payment['purpose'];
  readonly amount: string;
  readonly currency: string;
  readonly state: PaymentState;
  readonly reason: string | null;
  readonly captured: string;
  readonly refunded: string;
  readonly reserved: string;
  readonly sealed: Buffer;
  readonly checkout_ref: string | null;
  readonly charge_ref: string | null;
  readonly customer_id: string | null;
  readonly invoice_id: string | null;
  readonly called_at: Date | null;
  readonly processing_at: Date | null;
  readonly decision: Decision | null;
  readonly look_ups: number;
  readonly last_look_up_at: Date | null;
  readonly expires_at: Date;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly erased_at: Date | null;
}

export const PAYMENT_COLUMNS = `id, subject, provider, purpose, amount, currency, state, reason, captured, refunded,
  reserved, sealed, checkout_ref, charge_ref, customer_id, invoice_id, called_at, processing_at, decision,
  look_ups, last_look_up_at, expires_at, created_at, updated_at, erased_at`;

/** What is sealed in a row. */
type Personal = Pick<Payment, 'customerEmail' | 'itemName' | 'metadata' | 'pageToken'> &
  Partial<Pick<Payment, 'returnUrl' | 'method' | 'redirect'>>;

export interface PaymentSealing {
  readonly vault: Vault;
  /** Of payers' addresses. */
  readonly emails: BlindIndex;
  /** Of tokens of stored methods. */
  readonly methods: BlindIndex;
}

export function sealedPersonal(vault: Vault, id: string, personal: Personal): Buffer {
  const { customerEmail, itemName, metadata, returnUrl, method, pageToken, redirect } = personal;
  const kept: Personal = { customerEmail, itemName, metadata, returnUrl, method, pageToken, redirect };
  return vault.seal(JSON.stringify(kept), paymentContext(id));
}

/** What the columns for personal data get. */
export function sealedColumns({ vault, emails, methods }: PaymentSealing, id: string, personal: Personal) {
  const { customerEmail, method } = personal;
  return {
    sealed: sealedPersonal(vault, id, personal),
    emailIndex: emails.of(foldedEmail(customerEmail)),
    methodIndex: method === undefined ? undefined : methods.of(method.token),
  };
}

export function paymentOf(vault: Vault, row: PaymentRow): Payment {
  const personal: Personal = JSON.parse(vault.open(row.sealed, paymentContext(row.id)).toString());
  return {
    ...personal,
    redirect: personal.redirect,
    id: row.id,
    subject: row.subject,
    provider: row.provider,
    purpose: row.purpose,
    money: { amount: BigInt(row.amount), currency: row.currency },
    state: row.state,
    reason: row.reason ?? undefined,
    balance: { captured: BigInt(row.captured), refunded: BigInt(row.refunded), reserved: BigInt(row.reserved) },
    checkoutRef: row.checkout_ref ?? undefined,
    chargeRef: row.charge_ref ?? undefined,
    customerId: row.customer_id ?? undefined,
    invoiceId: row.invoice_id ?? undefined,
    calledAt: row.called_at ?? undefined,
    processingAt: row.processing_at ?? undefined,
    decision: row.decision ?? undefined,
    lookUps: row.look_ups,
    lastLookUpAt: row.last_look_up_at ?? undefined,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    erasedAt: row.erased_at ?? undefined,
  };
}

/** Mail servers treat the capitals of an address alike. */
export function foldedEmail(email: string): string {
  return email.toLowerCase();
}

/** Of the token of a page, which nobody gets out of the database. */
export function pageTokenHash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** What is personal in a payment is sealed for. */
export function paymentContext(id: string): string {
  return `payment ${id}`;
}

/** What the reason of a refund is sealed for. */
export function refundContext(id: string): string {
  return `refund ${id}`;
}

/** What a person wrote of a decision is sealed for. */
export function noteContext(id: string): string {
  return `payment note ${id}`;
}
