import { storableText } from '@rollcall/platform/outbound/foreign-text.ts';
import { parseDecimal } from '../../domain/money.ts';
import { NotificationError } from '../../domain/notification-error.ts';
import type { PaymentReference, ProviderFact } from '../../domain/ports.ts';
import { PAYFAST_CURRENCY } from './settings.ts';
import { encodeFields, type Field, isSameSignature, signatureOfEncoded } from './signature.ts';

/** An ITN, taken apart. */
export interface Itn {
  /** What the signature covers, as it came. */
  readonly signed: string;
  readonly signature: string;
  readonly fields: readonly Field[];
}

/** Everything up to the signature, which is the last field: what came after it would be unsigned. */
const BODY = /^([^\r\n]+)&signature=([0-9a-f]{32})$/;
/** What PayFast's own ids are made of; they go into paths of its API. */
const REFERENCE = /^[\w-]{1,64}$/;

/**
 * Pure. Reads the body of an ITN (PayFast, "Confirm payment").
 *
 * @throws NotificationError MALFORMED
 */
export function parseItn(body: Buffer): Itn {
  const [, signed, signature] = BODY.exec(body.toString('utf8')) ?? [];
  if (signed === undefined || signature === undefined) throw malformed('no signature at the end');
  const fields = [...new URLSearchParams(signed)];
  const names = fields.map(([name]) => name);
  if (new Set(names).size !== names.length) throw malformed('a field comes twice');
  return { signed, signature, fields };
}

/**
 * Pure. Whether the signature is right, over the bytes as they came, or over the fields as PHP
 * encodes them: a proxy may have encoded them anew.
 */
export function isSignedItn({ signed, signature, fields }: Itn, passphrase: string): boolean {
  return [signed, encodeFields(fields)]
    .map((encoded) => isSameSignature(signatureOfEncoded(encoded, passphrase), signature))
    .includes(true);
}

/** Pure. The value of a field; undefined where it is absent or empty. */
export function fieldOf({ fields }: Itn, name: string): string | undefined {
  const value = fields.find(([field]) => field === name)?.[1];
  return value === '' || value === undefined ? undefined : storableText(value);
}

/**
 * Pure. One event has one key: a payment in a state, or the end of a stored method.
 *
 * @throws NotificationError MALFORMED
 */
export function eventKeyOf(itn: Itn): string {
  const status = fieldOf(itn, 'payment_status');
  const chargeRef = referenceIn(itn, 'pf_payment_id');
  const token = referenceIn(itn, 'token');
  if (status === undefined || !REFERENCE.test(status)) throw malformed('no status');
  if (chargeRef !== undefined) return `${chargeRef}:${status}`;
  if (token !== undefined) return `token:${token}:${status}`;
  throw malformed('no id');
}

/**
 * Pure. What an ITN says. A status that PayFast does not document is for a person to judge, and
 * never a payment.
 *
 * @throws NotificationError MALFORMED
 */
export function factsOfItn(itn: Itn): readonly ProviderFact[] {
  const status = fieldOf(itn, 'payment_status') ?? '';
  const token = referenceIn(itn, 'token');
  const payment = paymentOf(itn, token);
  switch (status) {
    case 'COMPLETE':
      return [completed(itn, payment)];
    case 'CANCELLED':
      return [token === undefined ? { kind: 'payment.cancelled', payment } : { kind: 'method.cancelled', token }];
    case 'FAILED':
      return [{ kind: 'payment.failed', payment, reason: 'declined' }];
    case 'PENDING':
      return [{ kind: 'payment.processing', payment }];
    default:
      return [{ kind: 'unclear', payment, what: 'an ITN with a status that is not documented' }];
  }
}

function completed(itn: Itn, payment: PaymentReference): ProviderFact {
  const amount = parseDecimal(fieldOf(itn, 'amount_gross') ?? '', PAYFAST_CURRENCY);
  if (amount === undefined) throw malformed('no amount');
  // PayFast writes what it keeps as a negative amount.
  const fee = parseDecimal(fieldOf(itn, 'amount_fee') ?? '', PAYFAST_CURRENCY);
  return {
    kind: 'payment.succeeded',
    payment,
    money: { amount, currency: PAYFAST_CURRENCY },
    ...(fee === undefined ? {} : { fee: -fee }),
    ...(payment.token === undefined ? {} : { method: { token: payment.token } }),
  };
}

function paymentOf(itn: Itn, token: string | undefined): PaymentReference {
  const paymentId = fieldOf(itn, 'm_payment_id');
  const chargeRef = referenceIn(itn, 'pf_payment_id');
  return {
    ...(paymentId === undefined ? {} : { paymentId }),
    ...(chargeRef === undefined ? {} : { chargeRef }),
    ...(token === undefined ? {} : { token }),
  };
}

function referenceIn(itn: Itn, name: string): string | undefined {
  const value = fieldOf(itn, name);
  if (value !== undefined && !REFERENCE.test(value)) throw malformed(`${name} is no id`);
  return value;
}

function malformed(what: string): NotificationError {
  return new NotificationError('MALFORMED', `The ITN cannot be read: ${what}`);
}
