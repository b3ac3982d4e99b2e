import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { createdQuery, listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { answersOnce, found, IdParams, idOf, isUuid, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { refusals } from '../../domain/errors.ts';
import { type PayingDeps, payInvoice } from '../domain/invoice-payments.ts';
import { cancelInvoice, createInvoice, creditInvoice, type InvoicingDeps, issueInvoice } from '../domain/invoicing.ts';
import { printed, printedNote, sendPdf } from '../printing.ts';
import {
  CreditNoteAnswer,
  CreditNoteBody,
  creditItemsOf,
  creditNoteAnswer,
  InvoiceAnswer,
  invoiceAnswer,
  itemsOf,
  NewInvoiceBody,
  PayAnswer,
  PayBody,
} from './invoice-schemas.ts';
import { ownerOf } from './requests.ts';

const tags = ['billing'];
const DAYS_UNTIL_DUE = 7;

export interface InvoiceRoutesDeps extends InvoicingDeps, PayingDeps {
  readonly invoices: InvoicingDeps['invoices'];
  /** The page of an invoice, by its id. */
  readonly invoiceUrl: (id: string) => string;
  readonly idempotency: Idempotency;
}

/** What customers are to pay. */
export function invoiceRoutes(deps: InvoiceRoutesDeps): readonly Routes[] {
  return [
    readingRoutes(deps),
    pdfRoutes(deps),
    creatingRoute(deps),
    changingRoutes(deps),
    creditNoteRoute(deps),
    payingRoute(deps),
  ];
}

function readingRoutes({ invoices, invoiceUrl }: InvoiceRoutesDeps): Routes {
  const query = Type.Object(
    {
      ...listQuery,
      ...createdQuery,
      customerId: Type.Optional(Type.String({ maxLength: 36 })),
      subscriptionId: Type.Optional(Type.String({ maxLength: 36 })),
      status: Type.Optional(InvoiceAnswer.properties.status),
    },
    strict,
  );
  return (app) => {
    app.get(
      '/invoices',
      {
        schema: {
          tags,
          summary: 'Invoices, newest first',
          querystring: query,
          response: { 200: Type.Object({ invoices: Type.Array(InvoiceAnswer), ...pageAnswer }) },
        },
      },
      async (request) => {
        const page = pageOf(request.query);
        const { limit, offset } = page;
        const { customerId, subscriptionId, status: state } = request.query;
        // What is no id is nobody's.
        if ([customerId, subscriptionId].some((id) => id !== undefined && !isUuid(id)))
          return { invoices: [], total: 0, limit, offset, nextCursor: null };
        const query = { owner: ownerOf(request), customerId, subscriptionId, state, page };
        const { rows, total, nextCursor } = await invoices.list(query);
        return { invoices: rows.map((row) => invoiceAnswer(row, invoiceUrl)), total, limit, offset, nextCursor };
      },
    );
    app.get(
      '/invoices/:id',
      { schema: { tags, summary: 'One invoice', params: IdParams, response: { 200: InvoiceAnswer } } },
      async (request) => invoiceAnswer(found(await invoices.find(idOf(request), ownerOf(request))), invoiceUrl),
    );
  };
}

const PDF = {
  200: {
    description: 'The file',
    content: { 'application/pdf': { schema: Type.Unsafe<Buffer>({ type: 'string', format: 'binary' }) } },
  },
};

function pdfRoutes({ invoices }: InvoiceRoutesDeps): Routes {
  return (app) => {
    app.get(
      '/invoices/:id/pdf',
      {
        config: { refuses: refusals('CONFLICT') },
        schema: { tags, summary: 'An invoice that was issued as PDF', params: IdParams, response: PDF },
      },
      async (request, reply) => sendPdf(reply, printed(found(await invoices.find(idOf(request), ownerOf(request))))),
    );
    app.get(
      '/invoices/:id/credit-notes/:noteId/pdf',
      {
        schema: {
          tags,
          summary: 'A credit note as PDF',
          params: Type.Object({ ...IdParams.properties, noteId: Type.String({ description: 'UUID' }) }),
          response: PDF,
        },
      },
      async (request, reply) => {
        const invoice = found(await invoices.find(idOf(request), ownerOf(request)));
        const note = found(invoice.creditNotes.find(({ id }) => id === request.params.noteId));
        return sendPdf(reply, printedNote(invoice, note));
      },
    );
  };
}

function creatingRoute(deps: InvoiceRoutesDeps): Routes {
  const once = answersOnce(deps.idempotency);
  return (app) => {
    app.post(
      '/invoices',
      {
        config: {
          refuses: refusals(
            'CUSTOMER_NOT_FOUND',
            'CUSTOMER_ERASED',
            'INVOICE_TOTAL_NOT_ALLOWED',
            'TAX_INVOICE_INCOMPLETE',
            'NO_SELLER',
          ),
        },
        schema: {
          tags,
          summary: 'Make an invoice: a draft, or final at once',
          headers: idempotencyHeaders,
          body: NewInvoiceBody,
          response: { 201: InvoiceAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'createInvoice',
          effect: async (id) => {
            const { customerId, items, currency, taxBehavior, daysUntilDue, metadata, finalize } = request.body;
            const invoice = await createInvoice(deps, {
              id,
              owner: ownerOf(request),
              customerId,
              items: itemsOf(items),
              currency,
              taxBehavior: taxBehavior ?? 'exclusive',
              daysUntilDue: daysUntilDue ?? DAYS_UNTIL_DUE,
              metadata: metadata ?? {},
              isFinal: finalize === true,
            });
            return { status: 201, location: `invoices/${id}`, body: invoiceAnswer(invoice, deps.invoiceUrl) };
          },
        }),
    );
  };
}

function changingRoutes(deps: InvoiceRoutesDeps): Routes {
  const once = answersOnce(deps.idempotency);
  const { invoices } = deps;
  return (app) => {
    app.post(
      '/invoices/:id/finalize',
      {
        config: { refuses: refusals('CONFLICT', 'TAX_INVOICE_INCOMPLETE', 'NO_SELLER') },
        schema: {
          tags,
          summary: 'Issue a draft: it gets its number, and does not change any more',
          headers: idempotencyHeaders,
          params: IdParams,
          response: { 200: InvoiceAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'finalizeInvoice',
          effect: async () => {
            const invoice = found(await invoices.find(idOf(request), ownerOf(request)));
            return { status: 200, body: invoiceAnswer(await issueInvoice(deps, invoice), deps.invoiceUrl) };
          },
        }),
    );
    app.post(
      '/invoices/:id/void',
      {
        config: { refuses: refusals('CONFLICT') },
        schema: {
          tags,
          summary: 'Take back an invoice that is not paid; its number stays taken',
          headers: idempotencyHeaders,
          params: IdParams,
          response: { 200: InvoiceAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'voidInvoice',
          effect: async () => ({
            status: 200,
            body: invoiceAnswer(await cancelInvoice(deps, idOf(request), ownerOf(request)), deps.invoiceUrl),
          }),
        }),
    );
  };
}

function creditNoteRoute(deps: InvoiceRoutesDeps): Routes {
  const once = answersOnce(deps.idempotency);
  return (app) => {
    app.post(
      '/invoices/:id/credit-notes',
      {
        config: { refuses: refusals('CONFLICT', 'CREDIT_EXCEEDS_INVOICE', 'NO_SELLER') },
        schema: {
          tags,
          summary: 'Take back a part of an invoice that was issued',
          headers: idempotencyHeaders,
          params: IdParams,
          body: CreditNoteBody,
          response: { 201: CreditNoteAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'createCreditNote',
          effect: async (id) => {
            const { reason = null, items } = request.body;
            const invoiceId = idOf(request);
            const credit = { id, invoiceId, owner: ownerOf(request), reason, items: creditItemsOf(items) };
            const invoice = await creditInvoice(deps, credit);
            const note = found(invoice.creditNotes.find((each) => each.id === id));
            return { status: 201, location: `../${invoiceId}`, body: creditNoteAnswer(note, invoice) };
          },
        }),
    );
  };
}

function payingRoute(deps: InvoiceRoutesDeps): Routes {
  const once = answersOnce(deps.idempotency);
  const refuses = refusals(
    'CONFLICT',
    'METHOD_NOT_FOUND',
    'PROVIDER_NOT_CONFIGURED',
    'CURRENCY_NOT_SUPPORTED',
    'AMOUNT_TOO_SMALL',
    'AMOUNT_NOT_SUPPORTED',
    'PAYMENT_FAILED',
    'PROVIDER_ERROR',
  );
  return (app) => {
    app.post(
      '/invoices/:id/pay',
      {
        config: { refuses },
        schema: {
          tags,
          summary: 'Have an open invoice paid: by a stored method, or at `paymentUrl`',
          headers: idempotencyHeaders,
          params: IdParams,
          body: Type.Union([PayBody, Type.Null()]),
          response: { 200: PayAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'payInvoice',
          effect: async (id) => {
            const { methodId, provider, returnUrl } = request.body ?? {};
            const wanted = { id, owner: ownerOf(request), invoiceId: idOf(request), methodId, provider, returnUrl };
            const { invoice, paymentUrl } = await payInvoice(deps, wanted);
            const body = { ...invoiceAnswer(invoice, deps.invoiceUrl), paymentUrl: paymentUrl ?? null };
            return { status: 200, body };
          },
        }),
    );
  };
}
