import { systemClock } from '@rollcall/platform/clock.ts';
import { expect, test } from 'vitest';
import { createSandbox, type SandboxDecision, sandboxNotification } from './sandbox.ts';
import { someCharge, someCheckout, someRefund } from './testing/requests.ts';

const settings = { isProduction: false, secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX' };
const sandbox = createSandbox(settings, systemClock);

const decide = (decision: SandboxDecision, keepsMethod = false, now = systemClock.now()) =>
  sandboxNotification(
    settings,
    { paymentId: 'p', money: { amount: 14950n, currency: 'ZAR' }, decision, keepsMethod },
    now,
  );

test('it is refused in production', () => {
  expect(() => createSandbox({ ...settings, isProduction: true }, systemClock)).toThrow('refused in production');
});

test('a checkout leads to our own page', async () => {
  expect(await sandbox.createCheckout(someCheckout())).toMatchObject({ value: { redirect: { kind: 'sandbox-page' } } });
});

test.each([
  ['pay', [{ kind: 'payment.succeeded', money: { amount: 14950n, currency: 'ZAR' }, fee: 0n }]],
  ['decline', [{ kind: 'payment.failed', reason: 'declined' }]],
  ['cancel', [{ kind: 'payment.cancelled' }]],
] as const)('%s is told by a signed notification, the same each time', async (decision, facts) => {
  const notification = decide(decision);
  expect(sandbox.readFacts(notification.body)).toMatchObject(facts);
  const [one, other] = await Promise.all([sandbox.verify(notification), sandbox.verify(decide(decision))]);
  expect(one).toEqual({ eventKey: `p:${decision}`, warnings: [] });
  expect(other).toEqual(one);
});

test.each([
  ['changed', { ...decide('pay'), body: Buffer.from(decide('pay').body.toString().replace('14950', '1')) }],
  ['old', decide('pay', false, new Date(Date.now() - 301_000))],
  ['not signed', { ...decide('pay'), headers: {} }],
])('a decision that is %s is forged', async (_what, notification) => {
  await expect(sandbox.verify(notification)).rejects.toMatchObject({ code: 'FORGED' });
});

test.each([
  ['pay', 'accepted', 'payment.succeeded'],
  ['pay-then-decline', 'refused', 'payment.failed'],
] as const)('a method of %s is %s, and its lookup agrees', async (decision, outcome, kind) => {
  const [paid] = sandbox.readFacts(decide(decision, true).body);
  if (paid?.kind !== 'payment.succeeded' || paid.method === undefined) throw new Error('no method');
  const charge = someCharge({ method: paid.method });
  expect(await sandbox.stored?.charge(charge)).toMatchObject({ outcome });
  expect(await sandbox.lookUp({ ...charge, createdAt: new Date() })).toMatchObject({
    found: 'facts',
    facts: [{ kind }],
  });
});

test('a refund is over at once', async () => {
  expect(await sandbox.refund(someRefund())).toMatchObject({ outcome: 'accepted', value: { isSettled: true } });
});

test('it takes every currency of ISO 4217, and no other', () => {
  const rejections = ['ZAR', 'JPY', 'KWD', 'zar', 'ZZZ'].map(
    (currency) => sandbox.rejectionsOf({ amount: 1n, currency }, 'pay')[0]?.code,
  );
  expect(rejections).toEqual([undefined, undefined, undefined, 'CURRENCY_NOT_SUPPORTED', 'CURRENCY_NOT_SUPPORTED']);
});
