import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { bytesOf, formOf } from '../bodies.ts';
import { html, type Page, sendPage } from '../page.ts';
import type { Account, Payment, Visit } from './account.ts';
import { formatRand } from './amounts.ts';
import type { Notices } from './notices.ts';
import { type Merchant, readOrder } from './order.ts';

export interface CheckoutOptions {
  readonly account: Account;
  readonly merchant: Merchant;
  readonly notices: Notices;
  /** The text of every notification, without its signature. */
  readonly issued: ReadonlySet<string>;
}

type VisitRequest = FastifyRequest<{ Params: { id: string } }>;

/** What the buyer's browser sees: the form, the page, and the way back. */
export function addCheckout(app: FastifyInstance, { account, merchant, notices, issued }: CheckoutOptions): void {
  app.post('/eng/process', async (request, reply) => {
    const fields = [...(formOf(bytesOf(request)) ?? [])];
    const order = readOrder(fields, merchant);
    if (!('fields' in order)) return sendPage(reply.code(400), faultPage(order));
    return reply.redirect(`/eng/process/${account.open(order).id}`, 302);
  });

  app.get('/eng/process/:id', async (request: VisitRequest, reply) => {
    const visit = account.findVisit(request.params.id);
    return visit === undefined ? sendPage(reply.code(404), NO_SUCH_VISIT) : sendPage(reply, visitPage(visit));
  });

  app.post('/eng/process/:id', async (request: VisitRequest, reply) => {
    const visit = account.findVisit(request.params.id);
    if (visit === undefined) return sendPage(reply.code(404), NO_SUCH_VISIT);
    if (visit.state !== 'open') return sendPage(reply.code(409), visitPage(visit));
    switch (formOf(bytesOf(request))?.get('outcome') ?? '') {
      case 'pay':
        await tellOfPayment(request, account.pay(visit));
        return goBack(reply, visit, 'return_url');
      case 'cancel':
        account.cancelVisit(visit);
        return goBack(reply, visit, 'cancel_url');
      case 'decline':
        return sendPage(reply, visitPage(visit, 'The bank declined the card. Try again, or cancel.'));
      default:
        return sendPage(reply.code(400), visitPage(visit));
    }
  });

  app.post('/eng/query/validate', async (request, reply) => {
    const isIssued = issued.has(bytesOf(request).toString('utf8'));
    return await reply.type('text/plain').send(isIssued ? 'VALID' : 'INVALID');
  });

  async function tellOfPayment(request: FastifyRequest, payment: Payment): Promise<void> {
    await notices.send(request, { type: 'paid', payment, isBeforeTheAnswer: true });
  }
}

const NO_SUCH_VISIT: Page = { title: 'No such payment', body: html`<p>There is no payment here.</p>` };

function goBack(reply: FastifyReply, { order }: Visit, field: 'return_url' | 'cancel_url'): FastifyReply {
  const url = order.fields.get(field);
  if (url !== undefined) return reply.redirect(url, 303);
  const title = field === 'return_url' ? 'Paid' : 'Cancelled';
  return sendPage(reply, { title, body: html`<p>You can close this page.</p>` });
}

function faultPage(faults: readonly string[]): Page {
  const items = faults.map((fault) => html`<li>${fault}</li>`);
  return { title: 'Unable to process payment', body: html`<ul>${items}</ul>` };
}

function visitPage({ order, state }: Visit, fault = ''): Page {
  const { amount, fields, subscription } = order;
  const terms = subscription === undefined ? '' : `The card is kept, for ${formatRand(subscription.amount)} each time.`;
  const buttons = html`<form method="post">
<button name="outcome" value="pay">Pay</button>
<button name="outcome" value="decline">Decline</button>
<button name="outcome" value="cancel">Cancel</button>
</form>`;
  const body = html`<p>${fields.get('item_name') ?? ''}: R${formatRand(amount)}</p>
<p>${terms}</p>
<p role="alert">${fault}</p>
${state === 'open' ? buttons : html`<p>This payment was ${state} already.</p>`}`;
  const formTargets = ['return_url', 'cancel_url'].map((name) => fields.get(name)).filter((url) => url !== undefined);
  return { title: 'PayFast', body, formTargets };
}
