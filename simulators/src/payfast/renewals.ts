import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { bytesOf, jsonOf } from '../bodies.ts';
import type { Account } from './account.ts';
import type { Notices } from './notices.ts';

export interface RenewalsOptions {
  readonly account: Account;
  readonly notices: Notices;
}

const Renewal = Type.Object(
  { token: Type.String(), outcome: Type.Union([Type.Literal('paid'), Type.Literal('failed')]) },
  { additionalProperties: false },
);

/**
 * `POST /_control/renewals` `{token, outcome}` lets the next date of a scheduled subscription come.
 * The merchant is told where it was `paid`, with the fields of the first payment; nothing says that
 * it `failed`.
 */
export function addRenewals(app: FastifyInstance, { account, notices }: RenewalsOptions): void {
  app.post('/_control/renewals', async (request, reply) => {
    const renewal = jsonOf(bytesOf(request));
    if (!Value.Check(Renewal, renewal))
      return reply.code(400).send({ error: 'send {"token": "…", "outcome": "paid"}' });
    const billed = account.findBilled(renewal.token);
    if (billed?.subscription.kind !== 'scheduled') return reply.code(404).send({ error: 'no scheduled subscription' });
    if (renewal.outcome === 'failed') {
      const changed = account.change(billed, { type: 'failed' });
      return reply.code(changed === undefined ? 409 : 204).send();
    }
    const { amount, runDate: billingDate } = billed.subscription;
    const payment = account.charge(billed, { amount, fields: new Map() });
    if (payment === undefined) return reply.code(409).send({ error: 'the subscription is not active' });
    await notices.send(request, { type: 'paid', payment, isBeforeTheAnswer: false, billingDate });
    return reply.code(204).send();
  });
}
