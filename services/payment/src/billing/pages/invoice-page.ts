import { randomUUID } from 'node:crypto';
import { ServiceError } from '@rollcall/platform/errors.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { BlindIndex } from '@rollcall/platform/vault.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { formatDecimal } from '../../domain/money.ts';
import { html, type Page, pageHeaders, renderPage, secretHeaders } from '../../payments/pages/html.ts';
import { missingPage } from '../../payments/pages/pages.ts';
import { type PayingDeps, payInvoice } from '../domain/invoice-payments.ts';
import { amountDue, type Invoice } from '../domain/invoices.ts';
import { printed, sendPdf } from '../printing.ts';

const LINK = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]{43})$/;

/** Links that open the page of an invoice. They are made of its id and our keys, so that none is kept. */
export interface InvoiceLinks {
  urlOf(invoiceId: string): string;
  /** The invoice of the end of a link; undefined for what we have not made. */
  invoiceOf(link: string): string | undefined;
}

/** @param index links end with its HMAC, and go on while its key is known. */
export function createInvoiceLinks(index: BlindIndex, publicUrl: string): InvoiceLinks {
  return {
    urlOf: (invoiceId) => `${publicUrl}/pay/invoices/${invoiceId}.${index.of(invoiceId).toString('base64url')}`,
    invoiceOf(link) {
      const [, invoiceId, mac] = LINK.exec(link) ?? [];
      if (invoiceId === undefined || mac === undefined) return undefined;
      const shown = Buffer.from(mac, 'base64url');
      return index.candidates(invoiceId).some((each) => each.equals(shown)) ? invoiceId : undefined;
    },
  };
}

export interface InvoicePageDeps extends PayingDeps {
  readonly links: InvoiceLinks;
}

type LinkRequest = FastifyRequest<{ Params: { link: string } }>;

/**
 * The page that mails link to, with the invoice as a file. Opening it does nothing, since programs open
 * links of mails, too; its button begins a payment.
 */
export function invoicePages(deps: InvoicePageDeps): Routes {
  const found = async ({ params }: LinkRequest): Promise<Invoice | undefined> => {
    const id = deps.links.invoiceOf(params.link);
    return id === undefined ? undefined : deps.invoices.find(id, undefined);
  };
  return (app) => {
    const schema = { hide: true };
    app.get('/pay/invoices/:link', { schema }, async (request: LinkRequest, reply: FastifyReply) => {
      const invoice = await found(request);
      if (invoice === undefined) return send(reply.status(404), missingPage);
      return send(reply, invoicePage(invoice, `${request.params.link}/pdf`));
    });
    app.get('/pay/invoices/:link/pdf', { schema }, async (request: LinkRequest, reply: FastifyReply) => {
      const invoice = await found(request);
      if (invoice?.issued === undefined) return send(reply.status(404), missingPage);
      return sendPdf(reply.headers(fileHeaders), printed(invoice), 'attachment');
    });
    app.post('/pay/invoices/:link', { schema }, async (request: LinkRequest, reply: FastifyReply) => {
      const invoice = await found(request);
      if (invoice === undefined) return send(reply.status(404), missingPage);
      const url = await checkoutOf(deps, invoice);
      if (url === undefined) return send(reply.status(409), waitingPage);
      return send(reply, goingOnPage(url));
    });
  };
}

/** A file does nothing where it is opened. */
const fileHeaders = {
  ...secretHeaders,
  'content-security-policy': "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
};

/** Where it is paid; undefined where it is not now. */
async function checkoutOf(deps: PayingDeps, { id: invoiceId }: Invoice): Promise<string | undefined> {
  const request = { id: randomUUID(), owner: undefined, invoiceId };
  try {
    return (await payInvoice(deps, { ...request, methodId: undefined, provider: undefined, returnUrl: undefined }))
      .paymentUrl;
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

const states: Readonly<Record<Invoice['state'], string>> = {
  draft: 'The invoice has not been issued yet.',
  open: 'The invoice is not paid yet.',
  paid: 'The invoice is paid. Thank you.',
  void: 'The invoice was taken back. There is nothing to pay.',
};

/** @param file where the PDF is, relative to the page. */
function invoicePage(invoice: Invoice, file: string): Page {
  const { issued, currency, state } = invoice;
  const due = amountDue(invoice);
  return {
    title: `Invoice ${issued?.number ?? ''}`.trim(),
    body: html`<p role="status">${states[state]}</p>
<dl>
<dt>From</dt><dd>${issued?.supplier.name ?? ''}</dd>
<dt>Due</dt><dd>${issued?.dueOn.toString() ?? ''}</dd>
<dt>To be paid</dt><dd>${currency} ${formatDecimal(due, currency)}</dd>
</dl>
${issued === undefined ? '' : html`<p><a href="${file}">Download the invoice (PDF)</a></p>`}
${due > 0n && state === 'open' ? html`<form method="post"><button type="submit">Pay</button></form>` : ''}`,
    formAction: "'self'",
    isSubmitted: false,
  };
}

/** Not a redirect: browsers let a form be redirected to where forms may go alone, and that is here. */
function goingOnPage(url: string): Page {
  return {
    title: 'Go on to pay',
    body: html`<p><a class="button" href="${url}" rel="noreferrer">Go on to the payment page</a></p>`,
    formAction: "'none'",
    isSubmitted: false,
    goesOnTo: url,
  };
}

const waitingPage: Page = {
  title: 'Your invoice',
  body: html`<p role="status">It cannot be paid just now: a payment of it may be under way. Please come back later.</p>`,
  formAction: "'none'",
  isSubmitted: false,
};

function send(reply: FastifyReply, page: Page): FastifyReply {
  return reply.headers(pageHeaders(page)).send(renderPage(page));
}
