import type { Clock } from '@rollcall/platform/clock.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { bytesOf, formOf } from '../bodies.ts';
import { html, type Page, sendPage } from '../page.ts';
import type { Checkout, Checkouts } from './checkouts.ts';
import { createId } from './checkouts.ts';
import { paymentEvent, type YocoEvent } from './events.ts';

export interface PageOptions {
  readonly checkouts: Checkouts;
  readonly clock: Clock;
  readonly tell: (request: FastifyRequest, event: YocoEvent) => Promise<void>;
}

type PageRequest = FastifyRequest<{ Params: { id: string } }>;

/** The page at `redirectUrl`, on c.yoco.com. */
export function addPage(app: FastifyInstance, { checkouts, clock, tell }: PageOptions): void {
  app.get('/checkout/:id', async (request: PageRequest, reply) => {
    const checkout = checkouts.find(request.params.id);
    return checkout === undefined ? noCheckout(reply) : sendPage(reply, checkoutPage(checkouts.start(checkout)));
  });

  app.post('/checkout/:id', async (request: PageRequest, reply) => {
    const checkout = checkouts.find(request.params.id);
    if (checkout === undefined) return noCheckout(reply);
    if (checkout.status === 'completed') return sendPage(reply.code(409), checkoutPage(checkout));
    switch (outcomeOf(request)) {
      case 'pay': {
        const paid = checkouts.pay(checkout) ?? checkout;
        const paymentId = paid.paymentId ?? createId('p');
        await tell(request, paymentEvent(paid, { status: 'succeeded', at: clock.now(), paymentId }));
        return goOn(reply, checkout.successUrl, 'Paid');
      }
      case 'decline':
        await tell(request, paymentEvent(checkout, { status: 'failed', at: clock.now(), paymentId: createId('p') }));
        return goOn(reply, checkout.failureUrl, 'Declined');
      case 'cancel':
        return goOn(reply, checkout.cancelUrl, 'Cancelled');
      default:
        return sendPage(reply.code(400), checkoutPage(checkout));
    }
  });
}

function outcomeOf(request: FastifyRequest): string {
  return formOf(bytesOf(request))?.get('outcome') ?? '';
}

function goOn(reply: FastifyReply, url: string | undefined, title: string): FastifyReply {
  if (url !== undefined) return reply.redirect(url, 303);
  return sendPage(reply, { title, body: html`<p>You can close this page.</p>` });
}

function noCheckout(reply: FastifyReply): FastifyReply {
  return sendPage(reply.code(404), { title: 'No such checkout', body: html`<p>There is nothing to pay here.</p>` });
}

function checkoutPage({ amount, status, successUrl, failureUrl, cancelUrl }: Checkout): Page {
  const rand = `R${Math.floor(amount / 100)}.${String(amount % 100).padStart(2, '0')}`;
  const buttons = html`<form method="post">
<button name="outcome" value="pay">Pay</button>
<button name="outcome" value="decline">Decline</button>
<button name="outcome" value="cancel">Cancel</button>
</form>`;
  const body = html`<p>${rand}</p>
${status === 'completed' ? html`<p>This checkout was paid already.</p>` : buttons}`;
  const formTargets = [successUrl, failureUrl, cancelUrl].filter((url) => url !== undefined);
  return { title: 'Yoco', body, formTargets };
}
