import { feeOf, formatRand } from './amounts.ts';
import { encodeFields, type Field, signFields } from './signatures.ts';

/** What a notification (ITN) says. */
export interface Notice {
  readonly status: 'COMPLETE' | 'CANCELLED';
  readonly merchantId: string;
  /** Undefined where a subscription is cancelled: no payment belongs to that. */
  readonly pfPaymentId: string | undefined;
  /** In cents. */
  readonly amount: bigint;
  readonly token: string | undefined;
  /** YYYY-MM-DD; of subscriptions only. */
  readonly billingDate: string | undefined;
  /** Of the form, or of the call that charged: `m_payment_id`, `item_name`, `custom_str1` and so on. */
  readonly fields: ReadonlyMap<string, string>;
}

/** How a notification may be wrong, to try its receiver. */
export type Distortion = 'wrong-amount' | 'wrong-merchant' | 'bad-signature';

export interface SignedNotice {
  /** What `/eng/query/validate` calls VALID. */
  readonly issued: string;
  readonly body: string;
}

const CUSTOM = ['str', 'int'].flatMap((kind) => [1, 2, 3, 4, 5].map((number) => `custom_${kind}${number}`));
const OTHER_MERCHANT = '10099999';
const ONE_RAND = 100n;

/** The body of a notification, in the order of the SDK's fixture, signed. */
export function signNotice(notice: Notice, passphrase: string, distortions: ReadonlySet<Distortion>): SignedNotice {
  const fields = fieldsOf({
    ...notice,
    amount: notice.amount + (distortions.has('wrong-amount') ? ONE_RAND : 0n),
    merchantId: distortions.has('wrong-merchant') ? OTHER_MERCHANT : notice.merchantId,
  });
  const signature = signFields(fields, distortions.has('bad-signature') ? `not ${passphrase}` : passphrase);
  return { issued: encodeFields(fields), body: encodeFields([...fields, ['signature', signature]]) };
}

function fieldsOf({ status, merchantId, pfPaymentId, amount, token, billingDate, fields }: Notice): readonly Field[] {
  const given = (name: string): Field => [name, fields.get(name)?.trim() ?? ''];
  const fee = feeOf(amount);
  const money = [formatRand(amount), formatRand(-fee), formatRand(amount - fee)];
  return [
    given('m_payment_id'),
    ['pf_payment_id', pfPaymentId ?? ''],
    ['payment_status', status],
    given('item_name'),
    given('item_description'),
    ...['amount_gross', 'amount_fee', 'amount_net'].map((name, index): Field => [name, money[index] ?? '']),
    ...CUSTOM.map(given),
    given('name_first'),
    given('name_last'),
    given('email_address'),
    ['merchant_id', merchantId],
    ...(token === undefined ? [] : [['token', token] as const]),
    ...(billingDate === undefined ? [] : [['billing_date', billingDate] as const]),
  ];
}
