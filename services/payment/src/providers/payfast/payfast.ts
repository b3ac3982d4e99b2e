import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import type { Resolve } from '@rollcall/platform/outbound/lookups.ts';
import { NotificationError } from '../../domain/notification-error.ts';
import type { CheckoutPurpose, Money, PaymentProvider, RawNotification } from '../../domain/ports.ts';
import { type Calls, call } from '../call.ts';
import { rejectionsBelow } from '../single-currency.ts';
import { createPayFastApi } from './api.ts';
import { createPayFastCharges } from './charges.ts';
import { checkoutForm } from './form.ts';
import { fetchHistory } from './history.ts';
import { eventKeyOf, factsOfItn, fieldOf, isSignedItn, parseItn } from './itn.ts';
import { lookUpPayment } from './lookups.ts';
import { lookUpRefund, refundPayment } from './refunds.ts';
import { PAYFAST_CURRENCY, type PayFastSettings } from './settings.ts';
import { createSourceCheck } from './sources.ts';

/** R5.00, but for a checkout that only keeps a card. */
const LEAST: Money = { amount: 500n, currency: PAYFAST_CURRENCY };

export interface PayFastDeps extends Calls {
  readonly settings: PayFastSettings;
  /** Looks up the addresses of PayFast's names. */
  readonly resolve: Resolve;
}

/**
 * PayFast, of South Africa (developers.payfast.co.za). A checkout is a form that the payer's browser
 * posts, so that making one asks PayFast nothing.
 *
 * @throws Error for a source in the settings that is no address.
 */
export function createPayFast(deps: PayFastDeps): PaymentProvider {
  const { settings, clock } = deps;
  const api = createPayFastApi(settings, deps);
  const isFromPayFast = createSourceCheck(settings.sources, deps.resolve);

  return {
    name: 'payfast',
    repeatable: new Set(['checkout']),
    rejectionsOf: (money, purpose) => rejectionsBelow(money, isKept(money, purpose) ? { ...LEAST, amount: 0n } : LEAST),
    createCheckout: async (request) => ({
      outcome: 'accepted',
      value: { checkoutRef: request.paymentId, redirect: checkoutForm(settings, request) },
    }),
    lookUp: (question) => lookUpPayment(api, clock, question),
    refund: (request) => refundPayment(api, request),
    lookUpRefund: (request) => lookUpRefund(api, clock, request),
    stored: createPayFastCharges(api),
    async verify(notification) {
      const itn = parseItn(notification.body);
      if (!isSignedItn(itn, settings.passphrase)) throw forged('the signature is wrong');
      if (fieldOf(itn, 'merchant_id') !== settings.merchantId) throw forged('it is for another merchant', 'account');
      const eventKey = eventKeyOf(itn);
      const [isKnownSource] = await Promise.all([isFromPayFast(notification.remoteAddress), confirm(deps, itn.signed)]);
      return { eventKey, warnings: isKnownSource ? [] : [sourceWarning(notification)] };
    },
    readFacts: (body) => factsOfItn(parseItn(body)),
    async settlement(from, to) {
      const history = await fetchHistory(api, from, to);
      if (!history.isAnswered) {
        const { retryAfterMs } = history.result;
        return { found: 'unknown', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
      }
      // PayFast counts in days.
      return { found: 'lines', lines: history.lines.filter(({ at }) => at >= from && at < to) };
    },
  };
}

/** A checkout that keeps a card, and takes nothing. */
function isKept({ amount }: Money, purpose: CheckoutPurpose | 'charge'): boolean {
  return purpose === 'keep' && amount === 0n;
}

/**
 * Asks PayFast whether the ITN is its own ("Confirm payment", the server's confirmation).
 *
 * @throws NotificationError FORGED where it is not; UNVERIFIED where PayFast does not say.
 */
async function confirm(deps: PayFastDeps, signed: string): Promise<void> {
  const asked = await call(deps, {
    method: 'POST',
    url: urlBelow(deps.settings.siteUrl, '/eng/query/validate'),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: signed,
  });
  const [verdict] = asked.isAnswered ? asked.answer.body.trim().split(/\s+/) : [];
  if (verdict === 'VALID') return;
  if (verdict === 'INVALID') throw forged('PayFast does not know it');
  throw new NotificationError('UNVERIFIED', 'PayFast could not be asked whether the ITN is its own');
}

function sourceWarning({ remoteAddress }: RawNotification): string {
  return `the ITN came from ${remoteAddress ?? 'an address unknown'}, which is not known to be PayFast's`;
}

/** @param reason that of a signature when absent. */
function forged(what: string, reason?: 'account'): NotificationError {
  return new NotificationError('FORGED', `The ITN is not taken: ${what}`, reason);
}
