import { parseRand } from './amounts.ts';
import { type Field, FORM_FIELDS, formSignatures } from './signatures.ts';

/** The merchant for whom a simulator acts. */
export interface Merchant {
  readonly id: string;
  readonly key: string;
  readonly passphrase: string;
}

/** What a form asks for, checked. */
export interface Order {
  readonly fields: ReadonlyMap<string, string>;
  /** In cents. */
  readonly amount: bigint;
  readonly subscription: SubscriptionOrder | undefined;
}

export interface SubscriptionOrder {
  /** `scheduled`: PayFast charges at each date; `tokenization`: the merchant charges by the API. */
  readonly kind: 'scheduled' | 'tokenization';
  /** In cents, for each renewal. */
  readonly amount: bigint;
  /** 1 daily, 2 weekly, 3 monthly, 4 quarterly, 5 biannual, 6 annual. */
  readonly frequency: number;
  /** 0: until it is cancelled. */
  readonly cycles: number;
  /** YYYY-MM-DD of the first renewal; undefined: today. */
  readonly billingDate: string | undefined;
}

const MINIMUM_CENTS = 500n;
const LIMITS: Readonly<Record<string, number>> = {
  name_first: 100,
  name_last: 100,
  email_address: 100,
  m_payment_id: 100,
  item_name: 100,
  item_description: 255,
  custom_str1: 255,
  custom_str2: 255,
  custom_str3: 255,
  custom_str4: 255,
  custom_str5: 255,
};
const URL_FIELDS = ['return_url', 'cancel_url', 'notify_url'];
const INTEGER_FIELDS = ['custom_int1', 'custom_int2', 'custom_int3', 'custom_int4', 'custom_int5'];

/**
 * Reads a form that was posted to `/eng/process`.
 *
 * @returns the order, or all that is wrong with the form.
 */
export function readOrder(fields: readonly Field[], merchant: Merchant): Order | readonly string[] {
  const values = new Map(fields);
  const amount = parseRand(values.get('amount') ?? '');
  const faults = [
    ...nameFaults(fields),
    ...merchantFaults(fields, merchant),
    ...valueFaults(values),
    ...subscriptionFaults(values),
  ];
  if (amount === undefined) faults.push('amount: must be rand with two places, such as 149.50');
  else if (amount < MINIMUM_CENTS && !(amount === 0n && values.has('subscription_type')))
    faults.push('amount: must be at least 5.00');
  if (amount === undefined || faults.length > 0) return faults;
  return { fields: values, amount, subscription: subscriptionOf(values, amount) };
}

function nameFaults(fields: readonly Field[]): string[] {
  const names = fields.map(([name]) => name);
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  return [
    ...names.filter((name) => !FORM_FIELDS.has(name)).map((name) => `${name}: there is no such field`),
    ...repeated.map((name) => `${name}: was posted twice`),
  ];
}

function merchantFaults(fields: readonly Field[], { id, key, passphrase }: Merchant): string[] {
  const values = new Map(fields);
  const faults: string[] = [];
  if (values.get('merchant_id') !== id) faults.push('merchant_id: there is no such merchant');
  if (values.get('merchant_key') !== key) faults.push('merchant_key: is not that of the merchant');
  if (!formSignatures(fields, passphrase).includes(values.get('signature') ?? ''))
    faults.push('signature: Generated signature does not match submitted signature');
  return faults;
}

function valueFaults(values: ReadonlyMap<string, string>): string[] {
  const tooLong = Object.entries(LIMITS).filter(([name, most]) => (values.get(name) ?? '').length > most);
  const noUrl = URL_FIELDS.filter((name) => !isWebUrl(values.get(name) ?? 'http://absent'));
  const noInteger = INTEGER_FIELDS.filter((name) => !/^-?\d{0,255}$/.test(values.get(name) ?? ''));
  const currency = values.get('currency') ?? 'ZAR';
  return [
    ...((values.get('item_name') ?? '').trim() === '' ? ['item_name: is required'] : []),
    ...tooLong.map(([name, most]) => `${name}: must have at most ${most} characters`),
    ...noUrl.map((name) => `${name}: must be a URL`),
    ...noInteger.map((name) => `${name}: must be an integer`),
    ...(currency === 'ZAR' ? [] : ['currency: must be ZAR']),
  ];
}

function isWebUrl(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '');
}

function subscriptionFaults(values: ReadonlyMap<string, string>): string[] {
  const type = values.get('subscription_type');
  if (type === undefined) return [];
  if (type !== '1' && type !== '2') return ['subscription_type: must be 1 or 2'];
  const faults: string[] = [];
  const recurring = values.get('recurring_amount');
  if (recurring !== undefined && (parseRand(recurring) ?? 0n) < MINIMUM_CENTS)
    faults.push('recurring_amount: must be rand with two places, at least 5.00');
  if (!/^\d{4}-\d{2}-\d{2}$/.test(values.get('billing_date') ?? '2026-01-01'))
    faults.push('billing_date: must be YYYY-MM-DD');
  if (type === '2') return faults;
  if (!/^[1-6]$/.test(values.get('frequency') ?? '')) faults.push('frequency: must be 1 to 6');
  if (!/^\d{1,4}$/.test(values.get('cycles') ?? '')) faults.push('cycles: must be an integer, 0 for no end');
  return faults;
}

function subscriptionOf(values: ReadonlyMap<string, string>, amount: bigint): SubscriptionOrder | undefined {
  const type = values.get('subscription_type');
  if (type === undefined) return undefined;
  return {
    kind: type === '1' ? 'scheduled' : 'tokenization',
    amount: parseRand(values.get('recurring_amount') ?? '') ?? amount,
    frequency: Number(values.get('frequency') ?? '3'),
    cycles: Number(values.get('cycles') ?? '0'),
    billingDate: values.get('billing_date'),
  };
}
