import { randomBytes } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { bytesOf, jsonOf } from '../bodies.ts';
import type { IdempotencyKeys } from '../idempotency.ts';
import {
  type Checkout,
  CheckoutRequest,
  type Checkouts,
  createId,
  type ProcessingMode,
  RefundRequest,
} from './checkouts.ts';
import { refundEvent, type WebhookSubscription, type YocoEvent } from './events.ts';

export interface ApiOptions {
  readonly secretKey: string;
  readonly mode: ProcessingMode;
  readonly checkouts: Checkouts;
  readonly webhooks: Map<string, WebhookSubscription>;
  readonly keys: IdempotencyKeys;
  readonly clock: Clock;
  readonly url: () => string;
  readonly outcomeOf: (checkoutId: string) => string | undefined;
  readonly tell: (request: FastifyRequest, event: YocoEvent) => Promise<void>;
}

/** An answer before it is written. */
interface Outcome {
  readonly status: number;
  readonly body: unknown;
}

type IdRequest = FastifyRequest<{ Params: { id: string } }>;

const WebhookRequest = Type.Object(
  { name: Type.String({ minLength: 1 }), url: Type.String({ pattern: '^https?://' }) },
  { additionalProperties: false },
);
const SECRET_BYTES = 24;
const MAX_KEY_LENGTH = 255;

/** The API under `payments.yoco.com/api`. */
export function addApi(app: FastifyInstance, options: ApiOptions): void {
  const { checkouts, webhooks, mode, secretKey } = options;
  app.addHook('preHandler', async (request, reply) => {
    if (request.headers.authorization !== `Bearer ${secretKey}`)
      await send(reply, refusal(403, 'The key is missing, or not that of the merchant.'));
  });

  app.post('/api/checkouts', async (request, reply) => {
    await answerOnce(request, reply, async () => createCheckout(request, options));
    return reply;
  });

  app.get('/api/checkouts/:id', async (request: IdRequest, reply) => {
    const checkout = checkouts.find(request.params.id);
    return send(reply, checkout === undefined ? NO_CHECKOUT : { status: 200, body: checkout });
  });

  app.post('/api/checkouts/:id/refund', async (request: IdRequest, reply) => {
    await answerOnce(request, reply, async () => await refund(request, options));
    return reply;
  });

  // The plugin asks another host for it, payments-online.yoco.com.
  app.get('/payments/:id/refunds', async (request: IdRequest, reply) => {
    const checkout = checkouts.findByPayment(request.params.id);
    if (checkout === undefined) return send(reply, refusal(404, 'There is no such payment.'));
    return send(reply, { status: 200, body: { refunds: checkouts.refundsOf(checkout.id) } });
  });

  app.post('/api/webhooks', async (request, reply) => {
    await answerOnce(request, reply, async () => {
      const webhook = read(WebhookRequest, request);
      if (webhook === undefined) return refusal(400, 'name and url are required.');
      const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
      const subscription = { ...webhook, id: createId('sub'), mode, secret };
      webhooks.set(subscription.id, subscription);
      return { status: 201, body: subscription };
    });
    return reply;
  });

  app.get('/api/webhooks', async (_request, reply) => {
    const subscriptions = [...webhooks.values()].map(({ secret: _secret, ...shown }) => shown);
    return send(reply, { status: 200, body: { subscriptions } });
  });

  app.delete('/api/webhooks/:id', async (request: IdRequest, reply) => {
    if (!webhooks.delete(request.params.id)) return send(reply, refusal(404, 'There is no such webhook.'));
    return reply.code(204).send();
  });

  /** The outcome, or where the request has a key that was used before, what it stands for. */
  async function answerOnce(request: FastifyRequest, reply: FastifyReply, act: () => Promise<Outcome>): Promise<void> {
    const { 'idempotency-key': key } = request.headers;
    if (key === undefined) return void send(reply, await act());
    if (Array.isArray(key) || key === '' || key.length > MAX_KEY_LENGTH)
      return void send(reply, refusal(400, 'Idempotency-Key must have 1 to 255 characters.'));
    const claim = options.keys.claim(key, `${request.method} ${request.url}\n${bytesOf(request).toString('utf8')}`);
    switch (claim.state) {
      case 'running':
        return void send(reply, refusal(409, 'A request with this Idempotency-Key is in progress.'));
      case 'other-request':
        return void send(reply, refusal(422, 'The Idempotency-Key was used with another payload.'));
      case 'answered':
        reply.header('idempotent-replayed', 'true').code(claim.answer.status).type('application/json');
        return void reply.send(claim.answer.body);
      case 'new': {
        const outcome = await act();
        options.keys.keep(key, { status: outcome.status, body: JSON.stringify(outcome.body) });
        send(reply, outcome);
      }
    }
  }
}

function createCheckout(request: FastifyRequest, { checkouts, url }: ApiOptions): Outcome {
  const asked = read(CheckoutRequest, request);
  if (asked === undefined) return refusal(400, faultOf(CheckoutRequest, request));
  return { status: 200, body: checkouts.create(asked, (id) => `${url()}/checkout/${id}`) };
}

async function refund(request: IdRequest, options: ApiOptions): Promise<Outcome> {
  const { checkouts, mode, outcomeOf, tell, clock } = options;
  const checkout = checkouts.find(request.params.id);
  const asked = bytesOf(request).length === 0 ? {} : read(RefundRequest, request);
  if (checkout === undefined) return NO_CHECKOUT;
  if (asked === undefined) return refusal(400, faultOf(RefundRequest, request));
  if (mode === 'test') return refusal(400, 'Payments of test mode cannot be refunded.');
  if (checkout.status !== 'completed') return refusal(400, 'The checkout was not paid.');
  const left = checkouts.leftOf(checkout);
  const amount = asked.amount ?? left;
  if (left === 0) return refusal(400, 'Payment has already been refunded.');
  if (amount > left) return refusal(400, `The amount is more than ${left}, which is left.`);
  const begun = checkouts.refund(checkout, amount, asked.metadata ?? {});
  const ended = checkouts.endRefund(begun, outcomeOf(checkout.id) === 'refund-failed' ? 'failed' : 'succeeded');
  await tell(
    request,
    refundEvent(checkout, { refund: ended, at: clock.now(), refundableAmount: checkouts.leftOf(checkout) }),
  );
  return { status: 202, body: refundAnswer(checkout, begun.id) };
}

/** As the documentation has it: `successful`, whatever becomes of it. */
function refundAnswer({ id }: Checkout, refundId: string): unknown {
  return { id, refundId, message: 'Refund request accepted.', status: 'successful' };
}

function read<Schema extends TSchema>(schema: Schema, request: FastifyRequest): Static<Schema> | undefined {
  const value = jsonOf(bytesOf(request));
  return Value.Check(schema, value) ? value : undefined;
}

function faultOf(schema: TSchema, request: FastifyRequest): string {
  const [fault] = Value.Errors(schema, jsonOf(bytesOf(request)));
  return `${fault?.instancePath ?? ''} ${fault?.message ?? 'must be JSON'}`.trim();
}

function refusal(status: number, description: string): Outcome {
  return { status, body: { errorType: 'invalid_request', description } };
}

const NO_CHECKOUT = refusal(404, 'There is no such checkout.');

function send(reply: FastifyReply, { status, body }: Outcome): FastifyReply {
  return reply.code(status).send(body);
}
