import type { FastifyRequest } from 'fastify';
import type { NotificationAttempt } from '../notifier.ts';
import type { SimulationContext } from '../simulator.ts';
import type { Billed, Payment } from './account.ts';
import { type Distortion, type Notice, signNotice } from './notifications.ts';
import type { Merchant } from './order.ts';

/** What a merchant is told of. */
type Occasion =
  | {
      readonly type: 'paid';
      readonly payment: Payment;
      /** Whether the request that paid is answered only after the first attempt. */
      readonly isBeforeTheAnswer: boolean;
      /** YYYY-MM-DD, of renewals. */
      readonly billingDate?: string;
    }
  | { readonly type: 'cancelled'; readonly billed: Billed };

/** Tells the merchant. */
export interface Notices {
  /** Does nothing where the form had no `notify_url`. To be awaited before answering. */
  send(request: FastifyRequest, occasion: Occasion): Promise<void>;
}

/** @param issued gets the text of every notification, without its signature. */
export function createNotices(context: SimulationContext, merchant: Merchant, issued: Set<string>): Notices {
  function build(url: string, notice: Notice, attempt: NotificationAttempt) {
    const signed = signNotice(notice, merchant.passphrase, distortionsOf(attempt));
    issued.add(signed.issued);
    return { url, headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: signed.body };
  }

  return {
    async send(request, occasion) {
      const notice = noticeOf(occasion, merchant.id);
      const url = notice.fields.get('notify_url');
      if (url === undefined) return;
      const isBefore = occasion.type === 'paid' && occasion.isBeforeTheAnswer;
      await context.notify(request, [(attempt) => build(url, notice, attempt)], { isBeforeTheAnswer: isBefore });
    },
  };
}

function noticeOf(occasion: Occasion, merchantId: string): Notice {
  if (occasion.type === 'cancelled') {
    const { subscription, fields } = occasion.billed;
    const { token, amount } = subscription;
    const none = { pfPaymentId: undefined, billingDate: undefined };
    return { status: 'CANCELLED', merchantId, amount, token, fields, ...none };
  }
  const { pfPaymentId, amount, token, fields } = occasion.payment;
  return { status: 'COMPLETE', merchantId, pfPaymentId, amount, token, fields, billingDate: occasion.billingDate };
}

function distortionsOf({ isForged, wrong }: NotificationAttempt): ReadonlySet<Distortion> {
  return new Set<Distortion>([
    ...(isForged ? ['bad-signature' as const] : []),
    ...(wrong === undefined ? [] : [wrong]),
  ]);
}
