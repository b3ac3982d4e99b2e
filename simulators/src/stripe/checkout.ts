import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { bytesOf, formOf } from '../bodies.ts';
import { html, type Page, sendPage } from '../page.ts';
import { beginWork, type Calls, type CallsOptions } from './calls.ts';
import { findCard, TEST_CARDS } from './cards.ts';
import { decimalsOf } from './currencies.ts';
import { StripeError } from './errors.ts';
import type { CheckoutSession } from './objects.ts';
import { ListParameters, readParameters, Text } from './parameters.ts';
import type { Work } from './payments.ts';
import { CreateSession, completeSession, createSession, expireSession, type SessionTerms } from './sessions.ts';
import { pageOf } from './store.ts';

const PATH = '/v1/checkout/sessions';

/** Checkout sessions, and what they were asked for and do not show. */
export interface SessionsOptions extends Pick<CallsOptions, 'store' | 'context'> {
  readonly terms: Map<string, SessionTerms>;
}

/** `/v1/checkout/sessions`. */
export function addSessions(calls: Calls, { context, terms }: SessionsOptions): void {
  calls.on('POST', PATH, (call) => {
    const asked = readParameters(CreateSession, call.parameters);
    const session = createSession(call, asked, (id) => `${context.url()}/c/pay/${id}`);
    terms.set(session.id, asked);
    return session;
  });
  calls.on('GET', `${PATH}/:id`, (call) => current(call, call.store.get('checkout.session', call.id)));
  calls.on('GET', `${PATH}/:id/line_items`, ({ id, store, path }) => {
    const items = store.lineItems.get(store.get('checkout.session', id).id) ?? [];
    const data = items.map(({ price, quantity }, index) => {
      const amount_total = price.unit_amount * quantity;
      const { name: description, ...shown } = price;
      const common = { id: `li_${id}_${index}`, object: 'item', description, quantity, currency: price.currency };
      return { ...common, amount_total, amount_subtotal: amount_total, price: { object: 'price', ...shown } };
    });
    return { object: 'list', url: path, has_more: false, data };
  });
  calls.on('POST', `${PATH}/:id/expire`, (call) => expireSession(call, call.store.get('checkout.session', call.id)));
  calls.on('GET', PATH, (call) => {
    const filters = { payment_intent: Type.Optional(Text), customer: Type.Optional(Text) };
    const query = readParameters(ListParameters(filters), call.parameters);
    const sessions = call.store
      .all('checkout.session')
      .filter(({ payment_intent }) => query.payment_intent === undefined || payment_intent === query.payment_intent)
      .filter(({ customer }) => query.customer === undefined || customer === query.customer);
    return pageOf(sessions, call.path, query);
  });
}

type PageRequest = FastifyRequest<{ Params: { id: string } }>;

/** The page at a session's `url`, on checkout.stripe.com. */
export function addPage(app: FastifyInstance, { store, context, terms }: SessionsOptions): void {
  app.get('/c/pay/:id', async (request: PageRequest, reply) => {
    const work = beginWork(request, { store, context });
    const session = findSession(work, request.params.id);
    await work.tell();
    return session === undefined ? noSession(reply) : sendPage(reply, sessionPage(session));
  });

  app.post('/c/pay/:id', async (request: PageRequest, reply) => {
    const work = beginWork(request, { store, context });
    const session = findSession(work, request.params.id);
    if (session === undefined) return noSession(reply);
    if (session.status !== 'open') return sendPage(reply.code(409), sessionPage(session));
    const form = formOf(bytesOf(request));
    if (form?.get('outcome') === 'cancel') return goOn(reply, session.cancel_url, session);
    const card = findCard(form?.get('card') ?? '');
    if (card === undefined || form?.get('outcome') !== 'pay') return sendPage(reply.code(400), sessionPage(session));
    try {
      completeSession(work, session, { card, terms: terms.get(session.id) ?? {} });
    } catch (error) {
      if (!(error instanceof StripeError) || error.status !== 402) throw error;
      await work.tell();
      return sendPage(reply.code(402), sessionPage(session, error.message));
    }
    await work.tell();
    return goOn(reply, session.success_url, session);
  });
}

/** The session as it is by now: expired where its time is over. */
function current(work: Work, session: CheckoutSession): CheckoutSession {
  return session.status === 'open' && work.store.now >= session.expires_at ? expireSession(work, session) : session;
}

function findSession(work: Work, id: string): CheckoutSession | undefined {
  const session = work.store.find('checkout.session', id);
  return session && current(work, session);
}

function goOn(reply: FastifyReply, url: string | null, { id }: CheckoutSession): FastifyReply {
  if (url !== null) return reply.redirect(url.replaceAll('{CHECKOUT_SESSION_ID}', id), 303);
  return sendPage(reply, { title: 'Cancelled', body: html`<p>You can close this page.</p>` });
}

function noSession(reply: FastifyReply): FastifyReply {
  return sendPage(reply.code(404), { title: 'No such session', body: html`<p>There is nothing to pay here.</p>` });
}

function sessionPage(
  { status, mode, amount_total, currency, success_url, cancel_url }: CheckoutSession,
  fault = '',
): Page {
  const cards = TEST_CARDS.map(
    ({ number, label }, index) =>
      html`<label><input type="radio" name="card" value="${number}"${index === 0 ? html` checked` : ''}> ${label} (${number})</label>`,
  );
  const form = html`<form method="post">
<fieldset><legend>Card</legend>${cards}</fieldset>
<button name="outcome" value="pay">${mode === 'setup' ? 'Save the card' : 'Pay'}</button>
<button name="outcome" value="cancel">Cancel</button>
</form>`;
  const body = html`<p>${amount_total === null || currency === null ? 'The card is stored.' : shown(amount_total, currency)}</p>
<p role="alert">${fault}</p>
${status === 'open' ? form : html`<p>This session is ${status}.</p>`}`;
  return { title: 'Stripe', body, formTargets: [success_url, cancel_url ?? ''] };
}

function shown(amount: number, currency: string): string {
  const decimals = decimalsOf(currency);
  const digits = String(amount).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  return `${currency.toUpperCase()} ${whole}${decimals === 0 ? '' : `.${digits.slice(-decimals)}`}`;
}
