import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import { formatDecimal } from '../../domain/money.ts';
import type { CheckoutRequest, Redirect } from '../../domain/ports.ts';
import type { PayFastSettings } from './settings.ts';
import { encodeFields, type Field, presentFields, signatureOfEncoded } from './signature.ts';

/** Of `item_name` and `email_address`. */
const MOST_CHARACTERS = 100;
/** The page of payments is at other hosts than the form goes to. */
const LEADS_TO = ['https://*.payfast.co.za', 'https://*.payfast.io'];
/** `subscription_type` of a method that we charge ourselves. */
const TOKENIZATION = '2';

/**
 * Pure. The form that the payer's browser posts to begin a checkout. Its fields are in the order of
 * PayFast's documentation, which the signature covers ("Custom integration", step 1 and 2).
 */
export function checkoutForm(
  settings: PayFastSettings,
  request: CheckoutRequest,
): Redirect & { readonly kind: 'form' } {
  const { paymentId, purpose, money, customerEmail, itemName, returnUrl, cancelUrl } = request;
  const fields = presentFields([
    ['merchant_id', settings.merchantId],
    ['merchant_key', settings.merchantKey],
    ['return_url', returnUrl],
    ['cancel_url', cancelUrl],
    ['notify_url', settings.notifyUrl],
    // One that is cut would be another's.
    ['email_address', customerEmail.length > MOST_CHARACTERS ? '' : customerEmail],
    ['m_payment_id', paymentId],
    ['amount', formatDecimal(money.amount, money.currency)],
    ['item_name', itemNameOf(itemName)],
    ['subscription_type', purpose === 'pay' ? '' : TOKENIZATION],
  ]);
  const signature = formSignature(fields, settings.passphrase);
  return {
    kind: 'form',
    url: urlBelow(settings.siteUrl, '/eng/process').href,
    fields: [...fields, ['signature', signature]],
    ...(isOfPayFast(settings.siteUrl) ? { leadsTo: LEADS_TO } : {}),
  };
}

function isOfPayFast({ hostname }: URL): boolean {
  return hostname.endsWith('.payfast.co.za');
}

/** Pure. The signature of a form's fields, which are in PayFast's order. */
export function formSignature(fields: readonly Field[], passphrase: string): string {
  return signatureOfEncoded(encodeFields(presentFields(fields)), passphrase);
}

/** Pure. As much of a name as PayFast takes. */
export function itemNameOf(name: string): string {
  return Array.from(name.toWellFormed()).slice(0, MOST_CHARACTERS).join('');
}
