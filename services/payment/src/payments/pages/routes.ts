import type { Clock } from '@rollcall/platform/clock.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isSettled } from '../../domain/payment-states.ts';
import { type SandboxDecision, type SandboxSettings, sandboxNotification } from '../../providers/sandbox.ts';
import type { Receiving } from '../domain/inbox.ts';
import type { Payment, PaymentStore } from '../domain/payments.ts';
import { paymentUrlOf } from '../domain/take.ts';
import { type Page, pageHeaders, renderPage } from './html.ts';
import { cancelledPage, formPage, missingPage, sandboxPage, statePage } from './pages.ts';

/** A notification often comes with the payer: so long the page waits for it. */
const WAITS_MS = [50, 100, 200, 400, 400, 400];
const FORM_LIMIT_BYTES = 4096;

export interface PageRoutesDeps {
  readonly payments: PaymentStore;
  readonly receiving: Receiving;
  /** Undefined: there is no sandbox. */
  readonly sandbox: SandboxSettings | undefined;
  /** Base URL of our pages. */
  readonly publicUrl: string;
  readonly clock: Clock;
  /** Something is to be worked off. */
  readonly wake: () => void;
}

type TokenRequest = FastifyRequest<{ Params: { token: string } }>;

/** Pages of payers, behind the token of a payment. What is not paid can be paid there; what is over is shown. */
export function pageRoutes(deps: PageRoutesDeps): Routes {
  return (app) => {
    void app.register((scope, _options, done) => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser(
        'application/x-www-form-urlencoded',
        { parseAs: 'string', bodyLimit: FORM_LIMIT_BYTES },
        (_request, body, parsed) => parsed(null, new URLSearchParams(body.toString())),
      );
      addPages(scope, deps);
      done();
    });
  };
}

function addPages(app: App, deps: PageRoutesDeps): void {
  const { payments, publicUrl, wake } = deps;
  const schema = { hide: true };
  const found = (request: TokenRequest) => payments.findByPageToken(request.params.token);

  app.get('/pay/:token', { schema }, async (request: TokenRequest, reply: FastifyReply) => {
    const payment = await found(request);
    if (payment === undefined) return missing(reply);
    const { redirect, state } = payment;
    if (isSettled(state) || redirect === undefined) return send(reply, statePage(payment));
    if (redirect.kind === 'form') return send(reply, formPage(payment, redirect));
    if (redirect.kind === 'sandbox-page') return send(reply, sandboxPage(payment));
    return reply.header('cache-control', 'no-store').redirect(redirect.url, 303);
  });
  app.post('/pay/:token', { schema }, async (request: TokenRequest, reply: FastifyReply) => {
    const payment = await found(request);
    if (payment === undefined) return missing(reply);
    await decide(deps, payment, request.body instanceof URLSearchParams ? request.body.get('decision') : null);
    return reply.redirect(`${publicUrl}/pay/${payment.pageToken}/return`, 303);
  });
  app.get('/pay/:token/return', { schema }, async (request: TokenRequest, reply: FastifyReply) => {
    let payment = await found(request);
    if (payment === undefined) return missing(reply);
    if (!isSettled(payment.state) && (await payments.hurry(payment.id))) wake();
    for (const waitMs of WAITS_MS) {
      if (isSettled(payment.state)) break;
      await sleep(waitMs);
      payment = (await found(request)) ?? payment;
    }
    return send(reply, statePage(payment));
  });
  app.get('/pay/:token/cancel', { schema }, async (request: TokenRequest, reply: FastifyReply) => {
    const payment = await found(request);
    if (payment === undefined) return missing(reply);
    return send(reply, cancelledPage(payment, paymentUrlOf(publicUrl, payment) ?? ''));
  });
}

/** The choice on the page of the sandbox, which is told by a notification like that of any provider. */
async function decide(deps: PageRoutesDeps, payment: Payment, decision: string | null): Promise<void> {
  const { receiving, sandbox, clock, wake } = deps;
  const { id: paymentId, money, purpose, state, redirect } = payment;
  if (sandbox === undefined || redirect?.kind !== 'sandbox-page' || isSettled(state)) return;
  if (!isDecision(decision)) return;
  const decided = { paymentId, money, decision, keepsMethod: purpose !== 'pay' } as const;
  await receiving.receive('sandbox', sandboxNotification(sandbox, decided, clock.now()));
  wake();
}

const decisions: readonly SandboxDecision[] = ['pay', 'pay-then-decline', 'decline', 'cancel'];

function isDecision(text: string | null): text is SandboxDecision {
  return decisions.some((decision) => decision === text);
}

function missing(reply: FastifyReply): FastifyReply {
  return send(reply.status(404), missingPage);
}

function send(reply: FastifyReply, page: Page): FastifyReply {
  return reply.headers(pageHeaders(page)).send(renderPage(page));
}
