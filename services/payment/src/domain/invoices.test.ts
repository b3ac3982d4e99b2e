import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatTaxRate,
  type InvoiceItem,
  isInvoiceable,
  parseTaxRate,
  priceItem,
  type TaxBehavior,
  totalsOf,
} from './invoices.ts';

const VAT = 150_000n;

function item(unitAmount: bigint, quantity = 1n, taxRate = VAT): InvoiceItem {
  return { description: 'Widget', unitAmount, quantity, taxRate };
}

function taxOf(items: readonly InvoiceItem[], behavior: TaxBehavior): bigint {
  return totalsOf(items.map((each) => priceItem(each, behavior))).tax;
}

const anyItem = fc.record({
  description: fc.constant('Widget'),
  unitAmount: fc.bigInt({ min: -(10n ** 9n), max: 10n ** 9n }),
  quantity: fc.bigInt({ min: 1n, max: 1000n }),
  taxRate: fc.constantFrom(0n, VAT, 99_750n, 200_000n, 1n, 1_000_000n),
});
const anyBehavior = fc.constantFrom<TaxBehavior>('inclusive', 'exclusive');

describe('tax', () => {
  // One build gave 2,416.50 for 50 lines of 241.67, another 2,416.70 (invoiceninja/invoiceninja#11075).
  test('is rounded for each line: 20 % on 50 lines of 241.67 is 2,416.50, and of one line of 50 is 2,416.70', () => {
    expect(
      taxOf(
        Array.from({ length: 50 }, () => item(24_167n, 1n, 200_000n)),
        'exclusive',
      ),
    ).toBe(241_650n);
    expect(taxOf([item(24_167n, 50n, 200_000n)], 'exclusive')).toBe(241_670n);
  });

  test('of three lines of R0.10 is 6 cents, not the 5 of their sum', () => {
    expect(taxOf([item(10n), item(10n), item(10n)], 'exclusive')).toBe(6n);
  });

  test('in a price is 15/115 of it', () => {
    expect(priceItem(item(14_950n), 'inclusive')).toMatchObject({ net: 13_000n, tax: 1950n, gross: 14_950n });
    expect(priceItem(item(9999n), 'inclusive')).toMatchObject({ net: 8695n, tax: 1304n, gross: 9999n });
  });

  test('on top of a price is 15 % of it, and half a cent is rounded up', () => {
    expect(priceItem(item(13_000n), 'exclusive')).toMatchObject({ net: 13_000n, tax: 1950n, gross: 14_950n });
    expect(priceItem(item(110n), 'exclusive').tax).toBe(17n);
  });

  test('of a discount is that of the price with a minus', () => {
    expect(priceItem(item(-110n), 'exclusive')).toMatchObject({ net: -110n, tax: -17n, gross: -127n });
  });

  test('is summed by rate, the highest first', () => {
    const lines = [item(1000n), item(500n, 2n, 0n), item(2000n)].map((each) => priceItem(each, 'exclusive'));
    expect(totalsOf(lines)).toEqual({
      net: 4000n,
      tax: 450n,
      gross: 4450n,
      byRate: [
        { taxRate: VAT, net: 3000n, tax: 450n, gross: 3450n },
        { taxRate: 0n, net: 1000n, tax: 0n, gross: 1000n },
      ],
    });
  });

  test('and net are the gross, and lines add up to totals, on every invoice', () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 50 }), anyBehavior, (items, behavior) => {
        const lines = items.map((each) => priceItem(each, behavior));
        const totals = totalsOf(lines);
        for (const part of [...lines, ...totals.byRate, totals]) expect(part.net + part.tax).toBe(part.gross);
        for (const key of ['net', 'tax', 'gross'] as const) {
          expect(lines.reduce((sum, line) => sum + line[key], 0n)).toBe(totals[key]);
          expect(totals.byRate.reduce((sum, rate) => sum + rate[key], 0n)).toBe(totals[key]);
        }
      }),
    );
  });

  test('of a line is never off by more than half a minor unit', () => {
    fc.assert(
      fc.property(anyItem, (each) => {
        const amount = each.unitAmount * each.quantity;
        const exclusive = 2n * (priceItem(each, 'exclusive').tax * 1_000_000n - amount * each.taxRate);
        const whole = 1_000_000n + each.taxRate;
        const inclusive = 2n * (priceItem(each, 'inclusive').tax * whole - amount * each.taxRate);
        expect(exclusive <= 1_000_000n && exclusive >= -1_000_000n).toBe(true);
        expect(inclusive <= whole && inclusive >= -whole).toBe(true);
      }),
    );
  });
});

describe('tax rates', () => {
  test.each([
    ['15', 150_000n],
    ['9.975', 99_750n],
    ['0', 0n],
    ['100', 1_000_000n],
    ['0.0001', 1n],
  ])('of %s per cent are exact both ways', (percent, rate) => {
    expect(parseTaxRate(percent)).toBe(rate);
    expect(formatTaxRate(rate)).toBe(percent);
  });

  test.each(['', '-1', '100.0001', '1000', '15%', '1e1', '.5', '0.00001'])('%j is none', (percent) => {
    expect(parseTaxRate(percent)).toBeUndefined();
  });
});

test('an invoice is of nothing up to what may be charged, and never negative', () => {
  const invoiceable = [0n, 1n, 10n ** 12n, -1n, 10n ** 12n + 1n].filter((gross) => isInvoiceable({ gross }));
  expect(invoiceable).toEqual([0n, 1n, 10n ** 12n]);
});
