import type { PaymentMethod } from './objects.ts';

/** What a bank makes of a test card (docs.stripe.com/testing). */
export interface TestCard {
  readonly number: string;
  /** Its payment method, which calls may name without making one. */
  readonly methodId: string;
  readonly label: string;
  /** Undefined: pays. */
  readonly decline: CardDecline | undefined;
  /** Whether the decline comes only with later charges, once the card is stored. */
  readonly isStorable: boolean;
}

export interface CardDecline {
  readonly code: 'card_declined' | 'authentication_required';
  readonly decline_code: string;
  readonly message: string;
}

const DECLINED: CardDecline = {
  code: 'card_declined',
  decline_code: 'generic_decline',
  message: 'Your card was declined.',
};
/** What the control API's `declined` means. */
export const INSUFFICIENT_FUNDS: CardDecline = {
  code: 'card_declined',
  decline_code: 'insufficient_funds',
  message: 'Your card has insufficient funds.',
};
const AUTHENTICATION_REQUIRED: CardDecline = {
  code: 'authentication_required',
  decline_code: 'authentication_required',
  message: 'Your card was declined. This transaction requires authentication.',
};

export const TEST_CARDS: readonly TestCard[] = [
  {
    number: '4242424242424242',
    methodId: 'pm_card_visa',
    label: 'A card that pays',
    decline: undefined,
    isStorable: true,
  },
  {
    number: '4000000000000002',
    methodId: 'pm_card_chargeDeclined',
    label: 'A card that is declined',
    decline: DECLINED,
    isStorable: false,
  },
  {
    number: '4000000000009995',
    methodId: 'pm_card_chargeDeclinedInsufficientFunds',
    label: 'A card without funds',
    decline: INSUFFICIENT_FUNDS,
    isStorable: false,
  },
  {
    number: '4000000000000341',
    methodId: 'pm_card_chargeCustomerFail',
    label: 'A card that is declined later',
    decline: DECLINED,
    isStorable: true,
  },
  {
    number: '4000002760003184',
    methodId: 'pm_card_authenticationRequired',
    label: 'A card that wants its owner each time',
    decline: AUTHENTICATION_REQUIRED,
    isStorable: true,
  },
];

export function findCard(number: string): TestCard | undefined {
  return TEST_CARDS.find((card) => card.number === number);
}

/** The card that a payment method stands for. */
export function cardOf({ card: { fingerprint } }: PaymentMethod): TestCard | undefined {
  return TEST_CARDS.find(({ methodId }) => methodId === fingerprint);
}

export function cardDetails({ number, methodId }: TestCard): PaymentMethod['card'] {
  const expiry = { exp_month: 12, exp_year: 2034 };
  return { brand: 'visa', last4: number.slice(-4), ...expiry, country: 'US', fingerprint: methodId };
}
