import { expect, test } from 'vitest';
import { eventKeyOf, factsOfItn, isSignedItn, parseItn } from './itn.ts';
import { signatureOfEncoded } from './signature.ts';

// The vector: the fields of PayFast's own NotificationTest in their order, signed by its two PHP
// libraries.
const PASSPHRASE = 'jt7NOE43FZPn';
const SIGNED =
  'm_payment_id=INV-2026-000123&pf_payment_id=1089250&payment_status=COMPLETE&item_name=Order+%23123+%282+items%29' +
  '&item_description=&amount_gross=149.50&amount_fee=-5.75&amount_net=143.75&custom_str1=tenant%7Ea%2Fb&custom_str2=' +
  '&custom_str3=&custom_str4=&custom_str5=&custom_int1=&custom_int2=&custom_int3=&custom_int4=&custom_int5=' +
  '&name_first=Thandi&name_last=O%27Brien+%26+S%C3%B6hne&email_address=thandi%2Btest%40example.co.za' +
  '&merchant_id=10000100';
const ITN = `${SIGNED}&signature=3ea4821dc4d8413e2df8bced1fc9e12d`;

const parse = (body: string) => parseItn(Buffer.from(body));
const signed = (text: string) => parse(`${text}&signature=${signatureOfEncoded(text, PASSPHRASE)}`);

test('the vector of PayFast is signed', () => {
  expect(isSignedItn(parse(ITN), PASSPHRASE)).toBe(true);
});

test('what another encoder wrote is signed, too', () => {
  const bare = ITN.replaceAll('%28', '(').replaceAll('%29', ')').replace('%7E', '~');
  expect(isSignedItn(parse(bare), PASSPHRASE)).toBe(true);
});

test.each([
  ['another amount', ITN.replace('amount_gross=149.50', 'amount_gross=149.51')],
  ['another status', ITN.replace('COMPLETE', 'PENDING')],
  ['another payment', ITN.replace('000123&', '000124&')],
  ['a field left out', ITN.replace('&custom_int5=', '')],
  ['a field more', ITN.replace('&merchant_id', '&custom_int6=&merchant_id')],
  ['another order', ITN.replace('&custom_int4=&custom_int5=', '&custom_int5=&custom_int4=')],
])('%s is not signed', (_what, body) => {
  expect(isSignedItn(parse(body), PASSPHRASE)).toBe(false);
});

test('another passphrase is not that of the signature', () => {
  expect(isSignedItn(parse(ITN), 'another')).toBe(false);
});

test.each([
  ['no signature', SIGNED],
  ['fields behind the signature', `${ITN}&payment_status=COMPLETE`],
  ['a signature in capitals', ITN.toUpperCase()],
  ['a field twice', ITN.replace('&custom_str2=', '&custom_str2=&payment_status=COMPLETE')],
  ['a line break', `${ITN}\r\n`],
  ['nothing', ''],
  ['JSON', '{"payment_status":"COMPLETE"}'],
])('%s cannot be read', (_what, body) => {
  expect(() => parse(body)).toThrow('cannot be read');
});

test('a payment has the amount in cents, and what PayFast kept', () => {
  expect(factsOfItn(parse(ITN))).toEqual([
    {
      kind: 'payment.succeeded',
      payment: { paymentId: 'INV-2026-000123', chargeRef: '1089250' },
      money: { amount: 14950n, currency: 'ZAR' },
      fee: 575n,
    },
  ]);
  expect(eventKeyOf(parse(ITN))).toBe('1089250:COMPLETE');
});

test('a payment that keeps the card has its token', () => {
  const itn = signed('m_payment_id=p&pf_payment_id=1&payment_status=COMPLETE&amount_gross=0.00&token=t-1');
  expect(factsOfItn(itn)).toMatchObject([
    { money: { amount: 0n }, method: { token: 't-1' }, payment: { token: 't-1' } },
  ]);
});

test.each([
  ['payment_status=CANCELLED&token=t-1', { kind: 'method.cancelled', token: 't-1' }],
  ['m_payment_id=p&pf_payment_id=1&payment_status=CANCELLED', { kind: 'payment.cancelled' }],
  ['m_payment_id=p&pf_payment_id=1&payment_status=FAILED', { kind: 'payment.failed', reason: 'declined' }],
  ['m_payment_id=p&pf_payment_id=1&payment_status=PENDING', { kind: 'payment.processing' }],
  ['m_payment_id=p&pf_payment_id=1&payment_status=PAID', { kind: 'unclear' }],
  ['m_payment_id=p&pf_payment_id=1&payment_status=complete', { kind: 'unclear' }],
])('%s is what it says', (text, fact) => {
  expect(factsOfItn(signed(text))).toMatchObject([fact]);
});

test('the end of a stored card has a key without a payment', () => {
  expect(eventKeyOf(signed('payment_status=CANCELLED&pf_payment_id=&token=t-1'))).toBe('token:t-1:CANCELLED');
});

test.each([
  ['no id', 'payment_status=COMPLETE&amount_gross=1.00'],
  ['no status', 'pf_payment_id=1'],
  ['an id that leads elsewhere', 'pf_payment_id=..%2F..%2Fping&payment_status=COMPLETE'],
])('%s has no key', (_what, text) => {
  expect(() => eventKeyOf(signed(text))).toThrow('cannot be read');
});

test.each(['', '1e3', '149,50', '149.505', '+149.50', ' 149.50', 'NaN', '0x10'])(
  'a payment of %j cannot be read',
  (amount) => {
    const text = `pf_payment_id=1&payment_status=COMPLETE&amount_gross=${encodeURIComponent(amount)}`;
    expect(() => factsOfItn(signed(text))).toThrow('no amount');
  },
);

test('an id of ours that comes back with a NUL is storable, and that of no payment', () => {
  const [fact] = factsOfItn(signed(SIGNED.replace('INV-2026-000123', 'INV%00')));
  expect(fact).toMatchObject({ payment: { paymentId: 'INV\uFFFD' } });
});
