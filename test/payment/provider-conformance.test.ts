import { randomUUID } from 'node:crypto';
import type {
  Checkout,
  CheckoutRequest,
  Outcome,
  PaymentProvider,
  ProviderFact,
  StoredMethod,
  StoredMethods,
} from '@rollcall/payment/domain/ports.ts';
import { someCharge, someCheckout, someRefund } from '@rollcall/payment/providers/testing/requests.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { anotherAccount, type StartWorld, type World, worlds } from './provider-worlds.ts';

// What the domain may rely on, whichever provider it is, against the simulators, which have no code
// in common with the adapters.

const agent = createGuardedAgent({ mayConnect: () => true, connectTimeoutMs: 2000, keepAlive: false });
afterAll(() => agent.destroy());
const calls = { clock: systemClock, dispatcher: agent, timeoutMs: 5000 };

type Succeeded = Extract<ProviderFact, { readonly kind: 'payment.succeeded' }>;

function only(...names: readonly (keyof typeof worlds)[]) {
  return names.map((name) => [name, worlds[name]] as const);
}

describe.each(Object.entries(worlds))('%s', (name, start) => {
  const use = useWorld(start);

  test('a payment is paid, told by a notification, and found by a lookup', async () => {
    const { request, checkout } = await use.open();
    expect(await use.lookUp(request, checkout)).toMatchObject({ found: 'open' });
    await use.world.choose(checkout, 'pay');
    const paid = await use.captureOf(request);
    expect(paid.money).toEqual(request.money);
    const found = await use.lookUp(request, checkout, paid.payment.chargeRef);
    if (!use.isElsewhere) return;
    expect(found).toMatchObject({
      found: 'facts',
      facts: [{ kind: 'payment.succeeded', money: request.money, payment: { chargeRef: paid.payment.chargeRef } }],
    });
  });

  test.each(['decline', 'cancel'] as const)('%s is no payment', async (choice) => {
    const { request, checkout } = await use.open();
    await use.world.choose(checkout, choice);
    expect((await use.facts()).filter(({ kind }) => kind === 'payment.succeeded')).toEqual([]);
    const { found } = await use.lookUp(request, checkout);
    expect(found).toBe('open');
  });

  test('the same checkout asked for again is the same one', async () => {
    const { request, checkout } = await use.open();
    expect(accepted(await use.provider.createCheckout(request))).toEqual(checkout);
  });

  test('a notification that comes again has the same key, and others have others', async () => {
    if (use.world.simulator !== undefined) use.world.simulator.addFaults({ kind: 'twice' });
    const [one, other] = [await use.open(), await use.open()];
    await use.world.choose(one.checkout, 'pay');
    if (use.world.simulator === undefined) await use.world.choose(one.checkout, 'pay');
    const first = await use.keys();
    await use.world.choose(other.checkout, 'pay');
    const both = await use.keys();
    expect(first.length).toBeGreaterThan(new Set(first).size);
    expect(new Set(both).size).toBe(2 * new Set(first).size);
  });

  test('a notification of another account is forged, whatever payment it names', async () => {
    await using theirs = await start(calls, anotherAccount);
    const { request } = await use.open();
    await theirs.choose(accepted(await theirs.provider.createCheckout(request)), 'pay');
    const sent = theirs.notifications();
    expect(sent.length).toBeGreaterThan(0);
    for (const each of sent) {
      await expect(theirs.provider.verify(each)).resolves.toMatchObject({ warnings: [] });
      await expect(use.provider.verify(each)).rejects.toMatchObject({ code: 'FORGED' });
    }
  });

  test('a part is given back, then the rest, and no more', async () => {
    const { request, checkout, paid } = await use.payment();
    const part = use.refundOf({ request, checkout, paid }, 6000n, 0n);
    expect(await use.provider.refund(part)).toMatchObject({ outcome: 'accepted' });
    const rest = use.refundOf({ request, checkout, paid }, 8950n, 6000n);
    expect(await use.provider.refund(rest)).toMatchObject({ outcome: 'accepted' });
    if (!use.isElsewhere) return;
    const more = await use.provider.refund(use.refundOf({ request, checkout, paid }, 500n, 14_950n));
    expect(['refused', 'unknown']).toContain(more.outcome);
    await use.world.simulator?.idle();
    const told = (await use.facts()).filter(({ kind }) => kind === 'refund.succeeded');
    if (name === 'payfast') return;
    expect(new Set(told.map((fact) => (fact.kind === 'refund.succeeded' ? fact.refund.refundId : '')))).toEqual(
      new Set([part.refundId, rest.refundId]),
    );
  });
});

describe.each(only('payfast', 'yoco', 'stripe'))('%s, a provider elsewhere', (name, start) => {
  const use = useWorld(start);

  test('a refund whose answer is lost is made once, however it is asked for again', async () => {
    const { request, checkout, paid } = await use.payment();
    const refund = use.refundOf({ request, checkout, paid }, 6000n, 0n);
    use.world.simulator?.addFaults({ kind: 'reset', match: 'POST', times: 1 });
    const first = await use.provider.refund(refund);
    expect(['unknown', 'accepted']).toContain(first.outcome);
    const again = use.provider.repeatable.has('refund') ? await use.provider.refund(refund) : first;
    expect(again).toMatchObject({ outcome: 'accepted' });
    const rest = use.refundOf({ request, checkout, paid }, 8950n, 6000n);
    expect(await use.provider.refund(rest)).toMatchObject({ outcome: 'accepted' });
  });

  test('whatever it says is storable', async () => {
    use.world.simulator?.addFaults({ kind: 'broken-ids' });
    const { request, checkout, paid } = await use.payment();
    const said = [
      checkout,
      await use.lookUp(request, checkout),
      await use.provider.refund(use.refundOf({ request, checkout, paid }, 6000n, 0n)),
      await use.provider.settlement?.(new Date(0), new Date()),
    ];
    const texts = said.flatMap(textsIn);
    expect(texts.filter((text) => text.includes('\0') || !text.isWellFormed())).toEqual([]);
    // PayFast gives a checkout no id of its own.
    expect(/\uFFFD{2}$/.test(checkout.checkoutRef)).toBe(name !== 'payfast');
  });

  test('a notification with a bad signature is forged', async () => {
    use.world.simulator?.addFaults({ kind: 'bad-signature' });
    const { checkout } = await use.open();
    await use.world.choose(checkout, 'pay');
    const verdicts = await Promise.allSettled(use.world.notifications().map((sent) => use.provider.verify(sent)));
    expect(verdicts.length).toBeGreaterThan(0);
    for (const verdict of verdicts) expect(verdict).toMatchObject({ status: 'rejected', reason: { code: 'FORGED' } });
  });

  test('a wrong amount under a good signature is told as it is', async () => {
    use.world.simulator?.addFaults({ kind: 'wrong-amount' });
    const { request, checkout } = await use.open();
    await use.world.choose(checkout, 'pay');
    const paid = await use.captureOf(request);
    expect(paid.money.amount).not.toBe(request.money.amount);
  });
});

describe.each(only('payfast', 'stripe', 'sandbox'))('%s, which stores cards', (_name, start) => {
  const use = useWorld(start);

  test('a card is kept and charged', async () => {
    const method = await use.keepCard();
    const charge = someCharge({ paymentId: randomUUID(), method });
    const { chargeRef } = accepted(await storedOf(use.provider).charge(charge));
    const question = { ...charge, createdAt: new Date(), chargeRef };
    const found = await use.provider.lookUp(question);
    expect(found).toMatchObject({ found: 'facts', facts: [{ money: charge.money, payment: { chargeRef } }] });
  });
});

describe.each(only('payfast', 'stripe'))('%s, which stores cards elsewhere', (_name, start) => {
  const use = useWorld(start);

  test('a card is kept without a payment, and charged', async () => {
    const method = await use.keepCard({ purpose: 'keep', money: { amount: 0n, currency: 'ZAR' } });
    const captures = (await use.facts()).filter((fact) => fact.kind === 'payment.succeeded' && fact.money.amount > 0n);
    expect(captures).toEqual([]);
    const charge = someCharge({ paymentId: randomUUID(), method });
    expect(await storedOf(use.provider).charge(charge)).toMatchObject({
      outcome: 'accepted',
      value: { isSettled: true },
    });
  });

  // Case A17.
  test('a charge whose answer is lost is unknown until a lookup finds it', async () => {
    const method = await use.keepCard();
    const charge = someCharge({ paymentId: randomUUID(), method });
    use.world.simulator?.addFaults({ kind: 'half-body', match: 'POST', times: 1 });
    expect(await storedOf(use.provider).charge(charge)).toEqual({ outcome: 'unknown', reason: 'no_answer' });
    const question = { ...charge, createdAt: new Date() };
    const found = await use.provider.lookUp(question);
    expect(found).toMatchObject({ found: 'facts', facts: [{ kind: 'payment.succeeded', money: charge.money }] });
    if (!use.provider.repeatable.has('charge')) return;
    const { chargeRef } = accepted(await storedOf(use.provider).charge(charge));
    expect(found).toMatchObject({ facts: [{ payment: { chargeRef } }] });
  });

  test('a card that is forgotten is not charged, and may be forgotten again', async () => {
    const method = await use.keepCard();
    const stored = storedOf(use.provider);
    expect(await stored.forget(method)).toMatchObject({ outcome: 'accepted' });
    expect(await stored.forget(method)).toMatchObject({ outcome: 'refused' });
    const charge = someCharge({ paymentId: randomUUID(), method });
    expect(await stored.charge(charge)).toEqual({ outcome: 'refused', reason: 'method_unusable' });
  });

  test('a card is not taken for forgotten where the answer says nothing', async () => {
    const method = await use.keepCard();
    use.world.simulator?.addFaults({ kind: 'half-body', times: 1 });
    expect(await storedOf(use.provider).forget(method)).toMatchObject({ outcome: 'unknown' });
    expect(await storedOf(use.provider).forget(method)).toMatchObject({ outcome: 'refused' });
  });

  // A customer with many subscriptions; a lookup that reads one page never ends for what was not made.
  test('a charge is found behind a hundred later ones, and one that was not made is not', async () => {
    const method = await use.keepCard();
    const charge = someCharge({ paymentId: randomUUID(), method });
    const { chargeRef } = accepted(await storedOf(use.provider).charge(charge));
    for (let later = 0; later < 110; later += 1) {
      await storedOf(use.provider).charge(someCharge({ paymentId: randomUUID(), method }));
    }
    const question = { ...charge, createdAt: new Date() };
    expect(await use.provider.lookUp(question)).toMatchObject({
      found: 'facts',
      facts: [{ kind: 'payment.succeeded', payment: { chargeRef } }],
    });
    const never = await use.provider.lookUp({ ...question, paymentId: randomUUID() });
    // PayFast lists what it has done a day later.
    expect(never.found).toBe(use.provider.name === 'payfast' ? 'unknown' : 'absent');
  });

  test('a charge that was never made is not found', async () => {
    const method = await use.keepCard();
    const question = { ...someCharge({ paymentId: randomUUID(), method }), createdAt: new Date() };
    const { found } = await use.provider.lookUp(question);
    expect(['absent', 'unknown']).toContain(found);
  });
});

describe.each(only('payfast', 'stripe'))('%s, which knows its refunds', (_name, start) => {
  const use = useWorld(start);

  test('a refund is looked up before and after it was made', async () => {
    const { request, checkout, paid } = await use.payment();
    const refund = use.refundOf({ request, checkout, paid }, 6000n, 0n);
    expect(await use.provider.lookUpRefund(refund)).toEqual({ found: 'absent' });
    await use.provider.refund(refund);
    expect(await use.provider.lookUpRefund(refund)).toMatchObject({
      found: 'facts',
      facts: [{ kind: 'refund.succeeded', money: refund.money, refund: { refundId: refund.refundId } }],
    });
  });
});

describe.each(only('stripe'))('%s, which closes checkouts', (_name, start) => {
  const use = useWorld(start);

  test('nobody pays at a checkout that was closed, and it may be closed again', async () => {
    const { checkout } = await use.open();
    expect(await use.provider.closeCheckout?.(checkout.checkoutRef)).toMatchObject({ outcome: 'accepted' });
    await use.world.choose(checkout, 'pay');
    expect((await use.facts()).map(({ kind }) => kind)).toEqual(['payment.expired']);
    expect(await use.provider.closeCheckout?.(checkout.checkoutRef)).toMatchObject({ outcome: 'refused' });
  });

  test('a checkout that is paid stays so', async () => {
    const { request, checkout } = await use.payment();
    expect(await use.provider.closeCheckout?.(checkout.checkoutRef)).toMatchObject({ outcome: 'refused' });
    expect(await use.captureOf(request)).toMatchObject({ money: request.money });
  });
});

describe.each(only('payfast', 'stripe'))('%s, which lists what it settled', (_name, start) => {
  const use = useWorld(start);

  test('the list of the provider has the payment and its refund', async () => {
    const from = new Date(Date.now() - 60_000);
    const { request, checkout, paid } = await use.payment();
    await use.provider.refund(use.refundOf({ request, checkout, paid }, 6000n, 0n));
    const settlement = await use.provider.settlement?.(from, new Date(Date.now() + 60_000));
    const lines = settlement?.found === 'lines' ? settlement.lines.toSorted((a, b) => Number(b.gross - a.gross)) : [];
    expect(lines.map(({ kind, gross }) => [kind, gross])).toEqual([
      ['payment', 14_950n],
      ['refund', -6000n],
    ]);
    for (const { gross, fee, net } of lines) expect(gross + fee).toBe(net);
    expect(lines[0]).toMatchObject({ chargeRef: paid.payment.chargeRef });
    const before = await use.provider.settlement?.(new Date(0), from);
    expect(before).toEqual({ found: 'lines', lines: [] });
  });
});

describe.each(only('payfast'))('%s, which names the merchant', (_name, start) => {
  const use = useWorld(start);

  test('a notification for another merchant is forged', async () => {
    use.world.simulator?.addFaults({ kind: 'wrong-merchant' });
    const { checkout } = await use.open();
    await use.world.choose(checkout, 'pay');
    const [sent] = use.world.notifications();
    if (sent === undefined) throw new Error('nothing was sent');
    await expect(use.provider.verify(sent)).rejects.toMatchObject({ code: 'FORGED' });
  });
});

/** A world for each test, and what tests do in it. */
function useWorld(start: StartWorld) {
  let world: World;
  beforeEach(async () => {
    world = await start(calls);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  async function open(changes: Partial<CheckoutRequest> = {}) {
    const request = someCheckout({ paymentId: randomUUID(), ...changes });
    return { request, checkout: accepted(await world.provider.createCheckout(request)) };
  }

  /** One that is paid. */
  async function payment() {
    const { request, checkout } = await open();
    await world.choose(checkout, 'pay');
    return { request, checkout, paid: await captureOf(request) };
  }

  function refundOf({ request, checkout, paid }: Awaited<ReturnType<typeof payment>>, amount: bigint, before: bigint) {
    const { chargeRef = '' } = paid.payment;
    return someRefund({
      refundId: randomUUID(),
      paymentId: request.paymentId,
      money: { amount, currency: 'ZAR' },
      refundedBefore: before,
      chargeRef,
      checkoutRef: checkout.checkoutRef,
    });
  }

  async function keepCard(changes: Partial<CheckoutRequest> = {}): Promise<StoredMethod> {
    const { checkout } = await open({ purpose: 'pay-and-keep', ...changes });
    await world.choose(checkout, 'pay');
    const methods = (await facts()).flatMap((fact) =>
      'method' in fact && fact.method !== undefined ? [fact.method] : [],
    );
    const [method] = methods;
    if (method === undefined) throw new Error('no card was kept');
    return method;
  }

  function lookUp({ paymentId, money }: CheckoutRequest, { checkoutRef }: Checkout, chargeRef?: string) {
    const known = chargeRef === undefined ? {} : { chargeRef };
    return world.provider.lookUp({ paymentId, money, createdAt: new Date(), checkoutRef, ...known });
  }

  /** What all notifications so far say, each of which has to be verified. */
  async function facts(): Promise<readonly ProviderFact[]> {
    await keys();
    return world.notifications().flatMap(({ body }) => world.provider.readFacts(body));
  }

  async function keys(): Promise<readonly string[]> {
    const verified = await Promise.all(world.notifications().map((sent) => world.provider.verify(sent)));
    return verified.map(({ eventKey }) => eventKey);
  }

  /** The one capture of a payment, however often it is told; its ids are those of the checkout. */
  async function captureOf({ paymentId }: CheckoutRequest): Promise<Succeeded> {
    const captures = (await facts()).filter((fact) => fact.kind === 'payment.succeeded');
    const ours = captures.filter(({ payment: { paymentId: id } }) => id === paymentId);
    const [first] = ours;
    if (first === undefined) throw new Error('no notification tells of the payment');
    expect(new Set(ours.map(({ payment: { chargeRef } }) => chargeRef)).size).toBe(1);
    return first;
  }

  return {
    open,
    payment,
    refundOf,
    keepCard,
    lookUp,
    facts,
    keys,
    captureOf,
    get world() {
      return world;
    },
    get provider() {
      return world.provider;
    },
    get isElsewhere() {
      return world.simulator !== undefined;
    },
  };
}

/** All texts of a value, however deep. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function accepted<Value>(outcome: Outcome<Value>): Value {
  if (outcome.outcome !== 'accepted') throw new Error(`it was not accepted: ${JSON.stringify(outcome)}`);
  return outcome.value;
}

function storedOf({ stored }: PaymentProvider): StoredMethods {
  if (stored === undefined) throw new Error('the provider stores no methods');
  return stored;
}
