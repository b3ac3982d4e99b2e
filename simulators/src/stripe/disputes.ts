import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { bytesOf, jsonOf } from '../bodies.ts';
import { beginWork, type CallsOptions } from './calls.ts';
import type { Dispute } from './objects.ts';

const Opening = Type.Object(
  { paymentIntent: Type.String(), amount: Type.Optional(Type.Integer({ minimum: 1 })) },
  { additionalProperties: false },
);
const Closing = Type.Object({ outcome: Type.Enum(['won', 'lost']) }, { additionalProperties: false });

type CloseRequest = FastifyRequest<{ Params: { id: string } }>;

/**
 * `POST /_control/disputes` `{paymentIntent, amount}` lets a payer dispute a payment, or a part of it;
 * `POST /_control/disputes/{id}/close` `{outcome}` ends that. The merchant is told of both.
 */
export function addDisputes(app: FastifyInstance, { store, context }: Pick<CallsOptions, 'store' | 'context'>): void {
  app.post('/_control/disputes', async (request, reply) => {
    const opening = jsonOf(bytesOf(request));
    if (!Value.Check(Opening, opening)) return reply.code(400).send({ error: 'send {"paymentIntent": "pi_…"}' });
    const charge = store.all('charge').find(({ payment_intent: id, paid }) => paid && id === opening.paymentIntent);
    if (charge === undefined) return reply.code(404).send({ error: 'it is not paid' });
    const { id, currency, payment_intent } = charge;
    const work = beginWork(request, { store, context });
    const dispute = store.put<Dispute>({
      ...store.base('dispute', 'dp'),
      amount: opening.amount ?? charge.amount,
      currency,
      charge: id,
      payment_intent,
      reason: 'general',
      status: 'needs_response',
      metadata: {},
    });
    work.emit('charge.dispute.created', dispute);
    await work.tell();
    return reply.send(dispute);
  });
  app.post('/_control/disputes/:id/close', async (request: CloseRequest, reply) => {
    const closing = jsonOf(bytesOf(request));
    if (!Value.Check(Closing, closing)) return reply.code(400).send({ error: 'send {"outcome": "won"} or "lost"' });
    const dispute = store.find('dispute', request.params.id);
    if (dispute?.status !== 'needs_response') return reply.code(409).send({ error: 'there is no such open dispute' });
    const work = beginWork(request, { store, context });
    const closed = store.put<Dispute>({ ...dispute, status: closing.outcome });
    work.emit('charge.dispute.closed', closed);
    await work.tell();
    return reply.send(closed);
  });
}
