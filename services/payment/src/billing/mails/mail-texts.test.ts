import { describe, expect, test } from 'vitest';
import { priceItem, type TaxBehavior } from '../../domain/invoices.ts';
import type { Customer } from '../domain/customers.ts';
import type { Invoice } from '../domain/invoices.ts';
import { type QueuedMail, variablesOf } from './mail-texts.ts';

const party = { name: 'Kettle (Pty) Ltd', address: [] };
const day = Temporal.PlainDate.from('2026-11-27');
const issuedAt = Temporal.Instant.from('2026-11-27T10:00:00Z');
const paidAt = new Date('2026-11-27T12:00:00Z');

const line = (behavior: TaxBehavior, taxRate = 150_000n) =>
  priceItem({ description: 'Tea', unitAmount: 10_000n, quantity: 1n, taxRate }, behavior);

function invoiceOf(changes: Partial<Invoice> = {}): Invoice {
  return {
    id: 'i1',
    subject: 'shop',
    customerId: 'c1',
    subscription: undefined,
    state: 'open',
    currency: 'ZAR',
    taxBehavior: 'exclusive',
    daysUntilDue: 7,
    lines: [line('exclusive')],
    metadata: {},
    fromCredit: 0n,
    credited: 0n,
    issued: {
      title: 'Tax Invoice',
      number: 'INV-000001',
      supplier: party,
      recipient: party,
      issuedAt,
      issuedOn: day,
      dueOn: day,
    },
    paymentId: undefined,
    surplus: [],
    createdAt: new Date(0),
    paidAt: undefined,
    voidedAt: undefined,
    creditNotes: [],
    ...changes,
  };
}

const customer: Customer = {
  id: 'c1',
  subject: 'shop',
  email: 'ann@example.com',
  name: null,
  address: [],
  taxId: null,
  timeZone: 'UTC',
  locale: 'en',
  metadata: {},
  createdAt: new Date(0),
  updatedAt: new Date(0),
  erasedAt: undefined,
};

function mailOf(kind: QueuedMail['kind'], invoice: Invoice) {
  const mail = { kind, reason: undefined, retryOn: undefined };
  return variablesOf({ mail, invoice, customer, url: 'https://shop.example.com/i1' });
}

describe('a mail about an invoice', () => {
  test.each([
    { behavior: 'exclusive', net: 'ZAR 100.00', tax: 'ZAR 15.00', total: 'ZAR 115.00' },
    { behavior: 'inclusive', net: 'ZAR 86.96', tax: 'ZAR 13.04', total: 'ZAR 100.00' },
  ] as const)('adds up, with tax that is $behavior', ({ behavior, net, tax, total }) => {
    const invoice = invoiceOf({ lines: [line(behavior)] });
    expect(mailOf('invoice', invoice)).toMatchObject({ items: [{ description: 'Tea', amount: net }], tax, total });
  });

  test('has no line for a tax that is none', () => {
    expect(mailOf('invoice', invoiceOf({ lines: [line('exclusive', 0n)] }))).not.toHaveProperty('tax');
  });

  test('asks for what is left after credit, and its receipt names what was paid', () => {
    const credited = { lines: [line('exclusive')], fromCredit: 2_000n };
    const bill = {
      items: [
        { description: 'Tea', amount: 'ZAR 100.00' },
        { description: 'Credit', amount: 'ZAR -20.00' },
      ],
      tax: 'ZAR 15.00',
      total: 'ZAR 95.00',
    };
    expect(mailOf('invoice', invoiceOf(credited))).toMatchObject(bill);
    expect(mailOf('receipt', invoiceOf({ ...credited, state: 'paid', paidAt }))).toMatchObject(bill);
  });

  test('is no receipt where credit has paid all of it', () => {
    expect(mailOf('receipt', invoiceOf({ fromCredit: 11_500n, state: 'paid', paidAt }))).toBeUndefined();
  });

  test.each([
    { what: 'before the payment', hours: 1, total: 'ZAR 57.50' },
    { what: 'after the payment', hours: 3, total: 'ZAR 115.00' },
  ])('a credit note $what is no part of what was paid: $total', ({ hours, total }) => {
    const half = priceItem({ description: 'Tea', unitAmount: 5_000n, quantity: 1n, taxRate: 150_000n }, 'exclusive');
    const note = { id: 'n1', number: 'CN-000001', reason: null, lines: [{ ...half, lineIndex: 0 }], issuedOn: day };
    const creditNotes = [{ ...note, issuedAt: issuedAt.add({ hours }) }];
    const invoice = invoiceOf({ state: 'paid', paidAt, credited: 5_750n, creditNotes });
    expect(mailOf('receipt', invoice)).toMatchObject({ total });
  });
});
