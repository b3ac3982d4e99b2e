import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type InvoiceEntryKind, invoiceEntry, type ProviderEntryKind, providerEntry } from './ledger.ts';
import { total } from './money.ts';

type Entry = ReturnType<typeof providerEntry>;

const cause = { causeId: 'p1', currency: 'ZAR', provider: 'yoco', forInvoice: false } as const;

function byProvider(kind: ProviderEntryKind, amount: bigint, forInvoice = false): Entry {
  return providerEntry(kind, { ...cause, amount, forInvoice });
}

function byInvoice(kind: InvoiceEntryKind, net: bigint, tax: bigint): Entry {
  return invoiceEntry(kind, { causeId: 'i1', currency: 'ZAR', net, tax });
}

/** What the accounts hold that are not at zero. */
function balancesOf(...entries: readonly Entry[]): Readonly<Record<string, bigint>> {
  const balances = new Map<string, bigint>();
  for (const { account, amount } of entries.flatMap(({ postings }) => postings)) {
    balances.set(account, (balances.get(account) ?? 0n) + amount);
  }
  return Object.fromEntries([...balances].filter(([, amount]) => amount !== 0n));
}

test('a payment and its fee leave the rest at the provider', () => {
  expect(balancesOf(byProvider('capture', 14_950n), byProvider('fee', 575n))).toEqual({
    'provider:yoco': 14_375n,
    fees: 575n,
    sales: -14_950n,
  });
});

test('a refund takes back the sale, but not the fee', () => {
  const entries = [byProvider('capture', 14_950n), byProvider('fee', 575n), byProvider('refund', 14_950n)];
  expect(balancesOf(...entries)).toEqual({ 'provider:yoco': -575n, fees: 575n });
});

test('a refund that a bank sends back is as if there had been none', () => {
  expect(balancesOf(byProvider('refund', 100n), byProvider('refund_returned', 100n))).toEqual({});
});

describe('a dispute', () => {
  const opened = [byProvider('capture', 100n), byProvider('dispute_opened', 100n)];

  test('holds the money back', () => {
    expect(balancesOf(...opened)).toEqual({ 'disputed:yoco': 100n, sales: -100n });
  });

  test('that is won gives it back', () => {
    expect(balancesOf(...opened, byProvider('dispute_won', 100n))).toEqual({ 'provider:yoco': 100n, sales: -100n });
  });

  test('that is lost is a loss, and no return of the sale', () => {
    expect(balancesOf(...opened, byProvider('dispute_lost', 100n))).toEqual({ dispute_losses: 100n, sales: -100n });
  });
});

describe('an invoice', () => {
  const issued = byInvoice('invoice', 13_000n, 1950n);

  test('is owed by the customer until it is paid', () => {
    expect(balancesOf(issued)).toEqual({ receivable: 14_950n, sales: -13_000n, tax: -1950n });
    expect(balancesOf(issued, byProvider('capture', 14_950n, true))).toEqual({
      'provider:yoco': 14_950n,
      sales: -13_000n,
      tax: -1950n,
    });
  });

  test('that is void was never sold', () => {
    expect(balancesOf(issued, byInvoice('invoice_void', 13_000n, 1950n))).toEqual({});
  });

  test('that is credited after it was paid is owed to the customer until it is refunded', () => {
    const credited = [issued, byProvider('capture', 14_950n, true), byInvoice('credit_note', 13_000n, 1950n)];
    expect(balancesOf(...credited)).toEqual({ 'provider:yoco': 14_950n, receivable: -14_950n });
    expect(balancesOf(...credited, byProvider('refund', 14_950n, true))).toEqual({});
  });

  test('without tax has no posting of it', () => {
    expect(byInvoice('invoice', 100n, 0n).postings).toHaveLength(2);
  });
});

test('an entry is known by its kind and its cause', () => {
  expect(byProvider('capture', 1n)).toMatchObject({ key: 'capture:p1', kind: 'capture', currency: 'ZAR' });
  expect(byProvider('fee', 1n).key).toBe('fee:p1');
});

test('every entry, and so every ledger, sums to zero', () => {
  const amount = fc.bigInt({ min: 0n, max: 10n ** 12n });
  const providerKind = fc.constantFrom<ProviderEntryKind>(
    'capture',
    'fee',
    'refund',
    'refund_returned',
    'dispute_opened',
    'dispute_won',
    'dispute_lost',
  );
  const invoiceKind = fc.constantFrom<InvoiceEntryKind>('invoice', 'invoice_void', 'credit_note');
  const anyEntry = fc.oneof(
    fc
      .tuple(providerKind, amount, fc.boolean())
      .map(([kind, moved, forInvoice]) => byProvider(kind, moved, forInvoice)),
    fc.tuple(invoiceKind, amount, amount).map(([kind, net, tax]) => byInvoice(kind, net, tax)),
  );
  fc.assert(
    fc.property(fc.array(anyEntry, { maxLength: 30 }), (entries) => {
      for (const { postings } of entries) expect(total(postings.map((posting) => posting.amount))).toBe(0n);
      expect(total(Object.values(balancesOf(...entries)))).toBe(0n);
    }),
  );
});
