import type { CheckoutRequest, RawNotification, RefundRequest, StoredCharge } from '../../domain/ports.ts';

/** A checkout of R149.50. */
export function someCheckout(changes: Partial<CheckoutRequest> = {}): CheckoutRequest {
  return {
    paymentId: '7e6b1d3c-0c52-4d5e-9f0e-0d7f0f6d2a11',
    attempt: 1,
    purpose: 'pay',
    money: { amount: 14950n, currency: 'ZAR' },
    customerEmail: 'thandi+test@example.co.za',
    itemName: 'Order #123 (2 items)',
    returnUrl: 'https://shop.example.co.za/pay/return?o=1',
    cancelUrl: 'https://shop.example.co.za/pay/cancel',
    ...changes,
  };
}

/** A charge of R99.00. */
export function someCharge(changes: Partial<StoredCharge> = {}): StoredCharge {
  return {
    paymentId: '11111111-0c52-4d5e-9f0e-0d7f0f6d2a11',
    attempt: 1,
    money: { amount: 9900n, currency: 'ZAR' },
    itemName: 'Pro plan',
    method: { token: 'dc0521d3-55fe-269b-fa00-b647310d760f' },
    ...changes,
  };
}

/** A refund of R60.00 out of R149.50. */
export function someRefund(changes: Partial<RefundRequest> = {}): RefundRequest {
  return {
    refundId: '22222222-0c52-4d5e-9f0e-0d7f0f6d2a11',
    paymentId: '7e6b1d3c-0c52-4d5e-9f0e-0d7f0f6d2a11',
    attempt: 1,
    money: { amount: 6000n, currency: 'ZAR' },
    paid: 14_950n,
    refundedBefore: 0n,
    calledAt: new Date(0),
    reason: 'returned',
    chargeRef: '1089250',
    checkoutRef: 'ch_1',
    ...changes,
  };
}

/** A notification as it came. */
export function someNotification(body: string, headers: Record<string, string> = {}): RawNotification {
  return { body: Buffer.from(body), headers, remoteAddress: '197.97.145.145' };
}
