import type { FastifyReply } from 'fastify';
import { paymentError } from '../domain/errors.ts';
import { totalsOf } from '../domain/invoices.ts';
import { type PrintedInvoice, renderInvoice } from '../invoice-pdf.ts';
import type { CreditNote } from './domain/credit-notes.ts';
import type { Invoice } from './domain/invoices.ts';

/** What is on paper of an invoice. @throws ServiceError CONFLICT for a draft. */
export function printed({ issued, state, currency, lines }: Invoice): PrintedInvoice {
  if (issued === undefined) throw paymentError('CONFLICT', { details: { status: state } });
  return { ...issued, currency, lines, totals: totalsOf(lines) };
}

/** What is on paper of a credit note. */
export function printedNote(invoice: Invoice, { number, lines, issuedAt, issuedOn }: CreditNote): PrintedInvoice {
  const { supplier, recipient, currency, number: correctsNumber } = printed(invoice);
  const note = { title: 'Credit Note', number, correctsNumber, issuedAt, issuedOn } as const;
  return { ...note, supplier, recipient, currency, lines, totals: totalsOf(lines) };
}

/** Sends it as PDF: the same bytes each time. @param disposition whether browsers show it, or keep it as a file. */
export async function sendPdf(
  reply: FastifyReply,
  invoice: PrintedInvoice,
  disposition: 'inline' | 'attachment' = 'inline',
): Promise<FastifyReply> {
  const pdf = Buffer.from(await renderInvoice(invoice));
  return reply
    .type('application/pdf')
    .header('content-disposition', `${disposition}; filename="${invoice.number.replaceAll('/', '-')}.pdf"`)
    .send(pdf);
}
