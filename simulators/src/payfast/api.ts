import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SimulationContext } from '../simulator.ts';
import { type Account, leftOf, type Payment } from './account.ts';
import { bodyFields, callFault, type PayfastMode, queryOf } from './calls.ts';
import { refundsOf, renderHistory } from './history.ts';
import type { Notices } from './notices.ts';
import type { Merchant } from './order.ts';
import { INVALID_STATE, STATUS_NUMBERS, type Subscription, type SubscriptionChange } from './subscriptions.ts';

export interface ApiOptions {
  readonly account: Account;
  readonly merchant: Merchant;
  readonly mode: PayfastMode;
  readonly notices: Notices;
  readonly context: SimulationContext;
}

type TokenRequest = FastifyRequest<{ Params: { token: string; action: string } }>;
type IdRequest = FastifyRequest<{ Params: { id: string } }>;

const MINIMUM_CENTS = 500n;
const MAXIMUM_CYCLES = 1200n;

/** The API under `api.payfast.co.za`: subscriptions, refunds, history, status of a transaction. */
export function addApi(app: FastifyInstance, options: ApiOptions): void {
  const { account, merchant, mode } = options;
  app.addHook('preHandler', async (request, reply) => {
    const refusal = callFault(request, merchant, mode);
    if (refusal !== undefined) await fail(reply, refusal.code, refusal.message);
  });
  app.get('/ping', async (_request, reply) => reply.send(JSON.stringify(mode === 'live' ? 'Payfast API' : 'API V1')));
  addSubscriptions(app, options);
  addRefunds(app, options);
  app.get('/process/query/:id', async (request: IdRequest, reply) => {
    const { id } = request.params;
    const payment = account.findPayment(id) ?? account.payments.findLast(({ token }) => token === id);
    if (payment === undefined) return fail(reply, 404, 'Transaction not found');
    return succeed(reply, {
      response: {
        pf_payment_id: Number(payment.pfPaymentId),
        m_payment_id: payment.fields.get('m_payment_id') ?? '',
        status: 'COMPLETE',
        amount: Number(payment.amount),
        cc_status: '00',
        cc_message: 'Approved or completed successfully (00)',
      },
      message: 'Success',
    });
  });
  for (const path of ['', '/daily', '/weekly', '/monthly'] as const) {
    app.get(`/transactions/history${path}`, async (request, reply) => {
      const page = historyPage(path, queryOf(request), account.today);
      if (page === undefined) return fail(reply, 400, 'Required variables not present in request');
      return reply.type('text/csv; charset=utf-8').send(renderHistory(account.payments, page));
    });
  }
}

function addSubscriptions(app: FastifyInstance, { account, notices, context }: ApiOptions): void {
  app.get('/subscriptions/:token/fetch', async (request: TokenRequest, reply) => {
    const billed = account.findBilled(request.params.token);
    return billed === undefined ? noToken(reply) : succeed(reply, { response: rendered(billed.subscription) });
  });
  for (const action of ['pause', 'unpause', 'cancel', 'update'] as const) {
    app.route({
      method: action === 'update' ? 'PATCH' : 'PUT',
      url: `/subscriptions/:token/${action}`,
      handler: async (request: TokenRequest, reply) => {
        const billed = account.findBilled(request.params.token);
        if (billed === undefined) return noToken(reply);
        const change = readChange(action, new Map(bodyFields(request)));
        if (change === undefined) return fail(reply, 400, 'Required variables not present in request');
        const changed = account.change(billed, change);
        if (changed === undefined) return fail(reply, 400, INVALID_STATE);
        if (action === 'cancel') await notices.send(request, { type: 'cancelled', billed: changed });
        return succeed(reply, { response: true });
      },
    });
  }
  app.post('/subscriptions/:token/adhoc', async (request: TokenRequest, reply) => {
    const billed = account.findBilled(request.params.token);
    if (billed === undefined) return noToken(reply);
    const fields = new Map(bodyFields(request));
    const amount = readInteger(fields.get('amount'));
    if (amount === undefined || amount < MINIMUM_CENTS || (fields.get('item_name') ?? '') === '')
      return fail(reply, 400, 'Required variables not present in request');
    if (billed.subscription.kind !== 'tokenization') return failCharge(reply, INVALID_STATE);
    if (context.outcomeOf(billed.subscription.token) === 'declined')
      return failCharge(reply, 'Transaction was unsuccessful(51)');
    const payment = account.charge(billed, { amount, fields: chargedFields(fields) });
    if (payment === undefined) return failCharge(reply, INVALID_STATE);
    if (!['0', 'false'].includes(fields.get('itn') ?? ''))
      await notices.send(request, { type: 'paid', payment, isBeforeTheAnswer: false });
    const { pfPaymentId: pf_payment_id } = payment;
    return succeed(reply, { response: true, message: 'Transaction was successful(00)', pf_payment_id });
  });
}

function addRefunds(app: FastifyInstance, { account, mode }: ApiOptions): void {
  const find = (request: IdRequest): Payment | undefined =>
    mode === 'live' ? account.findPayment(request.params.id) : undefined;
  app.get('/refunds/query/:id', async (request: IdRequest, reply) => {
    const payment = find(request);
    return payment === undefined ? noRefund(reply) : reply.send(refundable(payment));
  });
  app.get('/refunds/:id', async (request: IdRequest, reply) => {
    const payment = find(request);
    return payment === undefined
      ? noRefund(reply)
      : succeed(reply, { response: refundsOf(payment), message: 'success' });
  });
  app.post('/refunds/:id', async (request: IdRequest, reply) => {
    const payment = find(request);
    if (payment === undefined) return noRefund(reply);
    const fields = new Map(bodyFields(request));
    const amount = readInteger(fields.get('amount'));
    const reason = fields.get('reason') ?? '';
    if (amount === undefined || reason.length < 3 || reason.length > 255 || !fields.has('notify_buyer'))
      return fail(reply, 400, 'Required variables not present in request');
    if (!account.refund(payment, amount)) return fail(reply, 400, 'The amount is not available for refund');
    return succeed(reply, { response: true, message: 'Success' });
  });
}

/** An adhoc call names these anew; custom fields stay those of the form. */
function chargedFields(fields: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const given = ['item_name', 'item_description', 'm_payment_id'].map((name) => [name, fields.get(name)] as const);
  return new Map(given.filter((entry): entry is readonly [string, string] => entry[1] !== undefined));
}

function readChange(
  action: 'pause' | 'unpause' | 'cancel' | 'update',
  fields: ReadonlyMap<string, string>,
): SubscriptionChange | undefined {
  const cycles = readInteger(fields.get('cycles') ?? '1');
  if (cycles === undefined || cycles > MAXIMUM_CYCLES) return undefined;
  if (action === 'pause') return { type: 'pause', cycles: Number(cycles) };
  if (action !== 'update') return { type: action };
  const amount = fields.has('amount') ? readInteger(fields.get('amount')) : null;
  const frequency = fields.get('frequency');
  const runDate = fields.get('run_date');
  const isGiven = ['cycles', 'frequency', 'run_date', 'amount'].some((name) => fields.has(name));
  if (!isGiven || amount === undefined || (amount !== null && amount < MINIMUM_CENTS)) return undefined;
  if (!/^[1-6]$/.test(frequency ?? '1') || !/^\d{4}-\d{2}-\d{2}$/.test(runDate ?? '2026-01-01')) return undefined;
  return {
    type: 'update',
    amount: amount ?? undefined,
    frequency: frequency === undefined ? undefined : Number(frequency),
    cycles: fields.has('cycles') ? Number(cycles) : undefined,
    runDate,
  };
}

function readInteger(text = ''): bigint | undefined {
  return /^\d{1,12}$/.test(text) ? BigInt(text) : undefined;
}

function historyPage(path: '' | '/daily' | '/weekly' | '/monthly', query: URLSearchParams, today: string) {
  const limit = Number(readInteger(query.get('limit') ?? '1000') ?? Number.NaN);
  const offset = Number(readInteger(query.get('offset') ?? '0') ?? Number.NaN);
  const range = path === '' ? givenRange(query, today) : periodOf(path, query.get('date') ?? today);
  return Number.isNaN(limit + offset) || range === undefined ? undefined : { ...range, limit, offset };
}

function givenRange(query: URLSearchParams, today: string) {
  const from = parseDay(query.get('from') ?? `${today.slice(0, 7)}-01`);
  const to = parseDay(query.get('to') ?? today);
  return from === undefined || to === undefined ? undefined : { from: from.toString(), to: to.toString() };
}

/** A month may be given as one of its days: its first one begins it. */
function periodOf(path: '/daily' | '/weekly' | '/monthly', date: string) {
  const day = parseDay(path === '/monthly' ? `${date.slice(0, 7)}-01` : date);
  const length = { '/daily': { days: 1 }, '/weekly': { weeks: 1 }, '/monthly': { months: 1 } }[path];
  return day && { from: day.toString(), to: day.add(length).subtract({ days: 1 }).toString() };
}

function parseDay(text: string): Temporal.PlainDate | undefined {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/.test(text)) return undefined;
  return Temporal.PlainDate.from(text);
}

function rendered(subscription: Subscription): unknown {
  const { token, status, kind, amount, cycles, cyclesComplete, frequency, runDate } = subscription;
  const common = { status: STATUS_NUMBERS[status], status_reason: '', status_text: status };
  if (kind === 'tokenization') return { ...common, token };
  const run_date = `${runDate}T00:00:00+02:00`;
  return { amount: Number(amount), cycles, cycles_complete: cyclesComplete, frequency, run_date, ...common, token };
}

function refundable(payment: Payment): unknown {
  const left = leftOf(payment);
  return {
    token: payment.token ?? payment.pfPaymentId,
    funding_type: 'Credit Card',
    amount_original: Number(payment.amount),
    amount_available_for_refund: Number(left),
    status: left > 0n ? 'REFUNDABLE' : 'COMPLETED',
    errors: [],
    refund_full: methodOf(left === payment.amount),
    refund_partial: methodOf(left > 0n),
    bank_names: [],
  };
}

function methodOf(isPossible: boolean): unknown {
  return { method: isPossible ? 'PAYMENT_SOURCE' : 'NOT_AVAILABLE' };
}

function succeed(reply: FastifyReply, data: Readonly<Record<string, unknown>>): FastifyReply {
  return reply.send({ code: 200, status: 'success', data });
}

function fail(reply: FastifyReply, code: number, message: string): FastifyReply {
  return reply.code(code).send({ code, status: 'failed', data: { response: false, message } });
}

/** A charge that was not made. What the number 4 says is not documented. */
function failCharge(reply: FastifyReply, message: string): FastifyReply {
  return reply.code(400).send({ code: 400, status: 'failed', data: { response: 4, message } });
}

function noToken(reply: FastifyReply): FastifyReply {
  return fail(reply, 404, 'Subscription not found');
}

/** In the sandbox there are no refunds. */
function noRefund(reply: FastifyReply): FastifyReply {
  return fail(reply, 404, 'Payment not found');
}
