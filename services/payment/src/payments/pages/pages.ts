import { formatDecimal } from '../../domain/money.ts';
import { isSettled, type PaymentState } from '../../domain/payment-states.ts';
import type { Redirect } from '../../domain/ports.ts';
import type { Payment } from '../domain/payments.ts';
import { Html, html, type Page } from './html.ts';

/** The form that takes the payer to the provider: by itself, or by its button. */
export function formPage(payment: Payment, redirect: Extract<Redirect, { readonly kind: 'form' }>): Page {
  const fields = redirect.fields.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">
`,
  );
  return {
    title: 'Go on to pay',
    body: html`${summaryOf(payment)}
<form method="post" action="${redirect.url}" accept-charset="utf-8">
${fields}<button type="submit">Go on to the payment page</button>
</form>`,
    // Browsers hold where a form is led to against the policy as well.
    formAction: [new URL(redirect.url).origin, ...(redirect.leadsTo ?? [])].join(' '),
    isSubmitted: true,
  };
}

/** To try out what becomes of renewals that fail. */
const keptButDeclining = html`<button type="submit" name="decision" value="pay-then-decline" class="other">
Pay now, and decline later charges</button>`;

/** Where the payer decides by hand, in place of a provider. */
export function sandboxPage(payment: Payment): Page {
  return {
    title: 'Test payment',
    body: html`<p>No money moves: this page stands in for a payment provider.</p>
${summaryOf(payment)}
<form method="post">
<button type="submit" name="decision" value="pay">Pay</button>
${payment.purpose === 'pay' ? '' : keptButDeclining}
<button type="submit" name="decision" value="decline" class="other">Decline</button>
<button type="submit" name="decision" value="cancel" class="other">Cancel</button>
</form>`,
    formAction: "'self'",
    isSubmitted: false,
  };
}

const said: Readonly<Record<PaymentState, string>> = {
  pending: 'The payment has not been confirmed yet.',
  processing: 'The payment is being confirmed.',
  succeeded: 'The payment has been received. Thank you.',
  partially_refunded: 'The payment has been received, and a part of it was given back.',
  refunded: 'The payment was given back.',
  failed: 'The payment was not successful. Nothing was taken.',
  expired: 'The time for this payment is over. Nothing was taken.',
  cancelled: 'The payment was cancelled.',
  disputed: 'The payment is disputed.',
  needs_review: 'The payment is being looked at. There is nothing that you have to do.',
};

/** What became of it, for a payer who comes back or comes again. */
export function statePage(payment: Payment): Page {
  const { state } = payment;
  const again = isSettled(state)
    ? new Html('')
    : html`<p><a class="button" href="">Look again</a></p>
`;
  return {
    title: 'Your payment',
    body: html`<p role="status">${said[state]}</p>
${summaryOf(payment)}
${again}${linkBack(payment)}`,
    formAction: "'none'",
    isSubmitted: false,
  };
}

/** After the payer gave up at the provider: nothing is decided by that. */
export function cancelledPage(payment: Payment, payUrl: string): Page {
  const page = statePage(payment);
  if (isSettled(payment.state)) return page;
  return {
    ...page,
    body: html`<p role="status">You came back without paying.</p>
${summaryOf(payment)}
<p><a class="button" href="${payUrl}">Pay after all</a></p>
${linkBack(payment)}`,
  };
}

/** A link that opens nothing. */
export const missingPage: Page = {
  title: 'There is no such payment',
  body: html`<p>The link is not complete, or the payment is long over.</p>`,
  formAction: "'none'",
  isSubmitted: false,
};

function linkBack({ returnUrl }: Payment): Html {
  return returnUrl === undefined
    ? new Html('')
    : html`<p><a href="${returnUrl}" rel="noreferrer">Back to the shop</a></p>
`;
}

function summaryOf({ itemName, money: { amount, currency } }: Payment): Html {
  return html`<dl>
<dt>For</dt><dd>${itemName}</dd>
<dt>Amount</dt><dd>${currency} ${formatDecimal(amount, currency)}</dd>
</dl>`;
}
