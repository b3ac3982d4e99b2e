import type { Simulator } from '@rollcall/simulators/simulator.ts';
import type { PaymentService } from './payment-service.ts';

/** What a provider lists of one payment, in cents. */
export interface Moved {
  readonly taken: readonly number[];
  readonly returned: readonly number[];
}

interface Movement {
  readonly paymentId: string | undefined;
  readonly taken?: number;
  readonly returned?: number;
}

/** The money of each payment by the providers' own lists. */
export async function moneyAt({ stripe, yoco, payfast }: PaymentService): Promise<ReadonlyMap<string, Moved>> {
  const movements = [...(await atStripe(stripe)), ...(await atYoco(yoco)), ...(await atPayFast(payfast))];
  const moved = new Map<string, Moved>();
  for (const { paymentId = 'of nobody', taken, returned } of movements) {
    const before = moved.get(paymentId) ?? { taken: [], returned: [] };
    moved.set(paymentId, {
      taken: taken === undefined ? before.taken : [...before.taken, taken],
      returned: returned === undefined ? before.returned : [...before.returned, returned],
    });
  }
  return moved;
}

async function stateOf<State>({ url }: Simulator): Promise<State> {
  return (await (await fetch(`${url}/_control/state`)).json()) as State;
}

interface StripeObject {
  readonly id: string;
  readonly object: string;
  readonly status?: string;
  readonly amount?: number;
  readonly amount_received?: number;
  readonly payment_intent?: string;
  readonly metadata?: { readonly paymentId?: string };
}

async function atStripe(simulator: Simulator): Promise<readonly Movement[]> {
  const objects = await stateOf<readonly StripeObject[]>(simulator);
  return objects.flatMap<Movement>(({ object, status, amount = 0, amount_received: received = 0, metadata }) => {
    const paymentId = metadata?.paymentId;
    if (object === 'payment_intent' && status === 'succeeded') return [{ paymentId, taken: received }];
    return object === 'refund' && status === 'succeeded' ? [{ paymentId, returned: amount }] : [];
  });
}

interface YocoState {
  readonly checkouts: readonly {
    readonly id: string;
    readonly status: string;
    readonly amount: number;
    readonly metadata?: { readonly paymentId?: string };
  }[];
  readonly refunds: readonly { readonly checkoutId: string; readonly amount: number; readonly status: string }[];
}

async function atYoco(simulator: Simulator): Promise<readonly Movement[]> {
  const { checkouts, refunds } = await stateOf<YocoState>(simulator);
  const payments = new Map(checkouts.map(({ id, metadata }) => [id, metadata?.paymentId]));
  const paid = checkouts.filter(({ status }) => status === 'completed');
  const given = refunds.filter(({ status }) => status === 'succeeded');
  return [
    ...paid.map(({ id, amount }) => ({ paymentId: payments.get(id), taken: amount })),
    ...given.map(({ checkoutId, amount }) => ({ paymentId: payments.get(checkoutId), returned: amount })),
  ];
}

interface PayFastState {
  readonly payments: readonly {
    readonly amount: number;
    readonly fields: { readonly m_payment_id?: string };
    readonly refunds: readonly { readonly amount: number }[];
  }[];
}

async function atPayFast(simulator: Simulator): Promise<readonly Movement[]> {
  const { payments } = await stateOf<PayFastState>(simulator);
  return payments.flatMap<Movement>(({ amount, fields: { m_payment_id: paymentId }, refunds }) => [
    { paymentId, taken: amount },
    ...refunds.map((refund) => ({ paymentId, returned: refund.amount })),
  ]);
}
