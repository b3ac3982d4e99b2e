import { strict } from '@rollcall/platform/http/resources.ts';
import { type Static, Type } from 'typebox';
import type { CreditItem } from '../../domain/credit-notes.ts';
import { type InvoiceItem, type InvoiceLine, totalsOf } from '../../domain/invoices.ts';
import {
  Currency,
  Id,
  LARGEST,
  line,
  Metadata,
  nullable,
  percentOf,
  ReturnUrl,
  TaxBehavior,
  TaxRate,
  Timestamp,
  taxRateOf,
} from '../../schemas.ts';
import type { CreditNote } from '../domain/credit-notes.ts';
import { amountDue, amountOverpaid, type Invoice } from '../domain/invoices.ts';
import { Provider } from './subscription-schemas.ts';

const Item = Type.Object(
  {
    description: line(500, 'What it is'),
    amount: Type.Integer({
      minimum: -LARGEST,
      maximum: LARGEST,
      description: 'Of one piece, in minor units; negative for a discount',
    }),
    quantity: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    taxRate: Type.Optional(TaxRate),
  },
  strict,
);

export const NewInvoiceBody = Type.Object(
  {
    customerId: Type.String({ maxLength: 36 }),
    items: Type.Array(Item, { minItems: 1, maxItems: 100 }),
    currency: Type.Optional(Currency),
    taxBehavior: Type.Optional(TaxBehavior),
    daysUntilDue: Type.Optional(Type.Integer({ minimum: 0, maximum: 365, description: '7 when absent' })),
    metadata: Type.Optional(Metadata),
    finalize: Type.Optional(Type.Boolean({ description: 'Issue it at once' })),
  },
  strict,
);

export const CreditNoteBody = Type.Object(
  {
    reason: Type.Optional(line(500, 'For people')),
    items: Type.Optional(
      Type.Refine(
        Type.Array(
          Type.Object(
            {
              line: Type.Integer({ minimum: 0, maximum: 99, description: 'Index of the item of the invoice, from 0' }),
              amount: Type.Optional(
                Type.Integer({
                  minimum: 1,
                  maximum: LARGEST,
                  description: 'With tax, in minor units; all that is left of the line when absent',
                }),
              ),
            },
            strict,
          ),
          { minItems: 1, maxItems: 100, description: 'All that is left of the invoice when absent' },
        ),
        (items) => new Set(items.map((item) => item.line)).size === items.length,
        () => 'must name each line once',
      ),
    ),
  },
  strict,
);

const LineAnswer = Type.Object({
  description: Type.String(),
  amount: Type.Integer(),
  quantity: Type.Integer(),
  taxRate: Type.Number(),
  subtotal: Type.Integer({ description: 'Without tax' }),
  tax: Type.Integer(),
  total: Type.Integer(),
});

export const CreditNoteAnswer = Type.Object({
  id: Id,
  number: Type.String(),
  invoiceId: Id,
  reason: nullable(Type.String()),
  currency: Type.String(),
  items: Type.Array(
    Type.Object({
      line: Type.Integer(),
      description: Type.String(),
      taxRate: Type.Number(),
      subtotal: Type.Integer(),
      tax: Type.Integer(),
      total: Type.Integer(),
    }),
  ),
  subtotal: Type.Integer(),
  tax: Type.Integer(),
  total: Type.Integer(),
  issuedOn: Type.String({ format: 'date' }),
  createdAt: Timestamp,
});

const PlainDate = Type.String({ format: 'date' });

export const InvoiceAnswer = Type.Object({
  id: Id,
  number: nullable(Type.String({ description: 'Without gaps in its series; null until it is finalised' })),
  status: Type.Enum(['draft', 'open', 'paid', 'void']),
  customerId: Id,
  subscriptionId: nullable(Id),
  periodStart: nullable(PlainDate),
  periodEnd: nullable(Type.String({ format: 'date', description: 'The first day of the next period' })),
  currency: Type.String(),
  taxBehavior: TaxBehavior,
  items: Type.Array(LineAnswer),
  metadata: Type.Record(Type.String(), Type.String()),
  subtotal: Type.Integer({ description: 'Without tax, in minor units' }),
  tax: Type.Integer(),
  taxes: Type.Array(Type.Object({ taxRate: Type.Number(), subtotal: Type.Integer(), tax: Type.Integer() })),
  total: Type.Integer(),
  amountDue: Type.Integer({ description: 'Of the total, less credit and credit notes' }),
  amountCredited: Type.Integer({ description: 'By credit notes' }),
  fromCredit: Type.Integer({ description: 'Of the total: paid by credit that the subscription had' }),
  creditNotes: Type.Array(CreditNoteAnswer),
  daysUntilDue: Type.Integer(),
  issuedOn: nullable(PlainDate),
  dueOn: nullable(PlainDate),
  paymentId: nullable(Id),
  pageUrl: nullable(Type.String({ description: 'Where the customer sees and pays it, once it is issued' })),
  amountOverpaid: Type.Integer({ description: 'Of `surplusPayments`; refund it' }),
  surplusPayments: Type.Array(Type.Object({ paymentId: Id, amount: Type.Integer() }), {
    description: 'Money that came beside what was owed, such as late, and has not gone back',
  }),
  createdAt: Timestamp,
  finalizedAt: nullable(Timestamp),
  paidAt: nullable(Timestamp),
  voidedAt: nullable(Timestamp),
});

export const PayBody = Type.Object(
  {
    methodId: Type.Optional(Type.String({ maxLength: 36, description: 'Of the customer, to be charged at once' })),
    provider: Type.Optional(Provider),
    returnUrl: Type.Optional(ReturnUrl),
  },
  strict,
);

export const PayAnswer = Type.Object({
  ...InvoiceAnswer.properties,
  paymentUrl: nullable(Type.String({ description: 'Where the customer pays' })),
});

export function itemsOf(items: Static<typeof NewInvoiceBody>['items']): readonly InvoiceItem[] {
  return items.map(({ description, amount, quantity, taxRate = 0 }) => ({
    description,
    unitAmount: BigInt(amount),
    quantity: BigInt(quantity),
    taxRate: taxRateOf(taxRate),
  }));
}

export function creditItemsOf(items: Static<typeof CreditNoteBody>['items']): readonly CreditItem[] | undefined {
  return items?.map(({ line: lineIndex, amount }) => ({
    lineIndex,
    gross: amount === undefined ? undefined : BigInt(amount),
  }));
}

/** @param urlOf the page of an invoice, by its id. */
export function invoiceAnswer(invoice: Invoice, urlOf: (id: string) => string): Static<typeof InvoiceAnswer> {
  const { issued, subscription, lines } = invoice;
  const { net, tax, gross, byRate } = totalsOf(lines);
  return {
    id: invoice.id,
    number: issued?.number ?? null,
    pageUrl: issued === undefined ? null : urlOf(invoice.id),
    status: invoice.state,
    customerId: invoice.customerId,
    subscriptionId: subscription?.id ?? null,
    periodStart: subscription?.start.toString() ?? null,
    periodEnd: subscription?.end.toString() ?? null,
    currency: invoice.currency,
    taxBehavior: invoice.taxBehavior,
    items: lines.map(lineAnswer),
    metadata: { ...invoice.metadata },
    subtotal: Number(net),
    tax: Number(tax),
    taxes: byRate.map((each) => ({
      taxRate: percentOf(each.taxRate),
      subtotal: Number(each.net),
      tax: Number(each.tax),
    })),
    total: Number(gross),
    amountDue: Number(amountDue(invoice)),
    amountCredited: Number(invoice.credited),
    fromCredit: Number(invoice.fromCredit),
    creditNotes: invoice.creditNotes.map((note) => creditNoteAnswer(note, invoice)),
    daysUntilDue: invoice.daysUntilDue,
    issuedOn: issued?.issuedOn.toString() ?? null,
    dueOn: issued?.dueOn.toString() ?? null,
    paymentId: invoice.paymentId ?? null,
    amountOverpaid: Number(amountOverpaid(invoice)),
    surplusPayments: invoice.surplus.map(({ paymentId, amount }) => ({ paymentId, amount: Number(amount) })),
    createdAt: invoice.createdAt.toISOString(),
    finalizedAt: issued?.issuedAt.toString() ?? null,
    paidAt: invoice.paidAt?.toISOString() ?? null,
    voidedAt: invoice.voidedAt?.toISOString() ?? null,
  };
}

export function creditNoteAnswer(note: CreditNote, invoice: Invoice): Static<typeof CreditNoteAnswer> {
  const { net, tax, gross } = totalsOf(note.lines);
  return {
    id: note.id,
    number: note.number,
    invoiceId: invoice.id,
    reason: note.reason,
    currency: invoice.currency,
    items: note.lines.map((each) => ({
      line: each.lineIndex,
      description: each.description,
      taxRate: percentOf(each.taxRate),
      subtotal: Number(each.net),
      tax: Number(each.tax),
      total: Number(each.gross),
    })),
    subtotal: Number(net),
    tax: Number(tax),
    total: Number(gross),
    issuedOn: note.issuedOn.toString(),
    createdAt: note.issuedAt.toString(),
  };
}

function lineAnswer(each: InvoiceLine): Static<typeof LineAnswer> {
  return {
    description: each.description,
    amount: Number(each.unitAmount),
    quantity: Number(each.quantity),
    taxRate: percentOf(each.taxRate),
    subtotal: Number(each.net),
    tax: Number(each.tax),
    total: Number(each.gross),
  };
}
