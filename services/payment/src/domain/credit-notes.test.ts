import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { creditLines, restOf } from './credit-notes.ts';
import { type InvoiceLine, priceItem } from './invoices.ts';
import { total } from './money.ts';

const VAT = 150_000n;
const none: ReadonlyMap<number, bigint> = new Map();

function line(unitAmount: bigint): InvoiceLine {
  return priceItem({ description: 'Widget', unitAmount, quantity: 1n, taxRate: VAT }, 'exclusive');
}

test('a credit note takes back a line with its tax', () => {
  const credit = creditLines({ lines: [line(1000n), line(500n)], credited: none }, [{ lineIndex: 1 }]);
  expect(credit).toEqual({
    excesses: [],
    lines: [{ lineIndex: 1, description: 'Widget', taxRate: VAT, net: 500n, tax: 75n, gross: 575n }],
  });
});

test('it takes no more than what is left of a line, and nothing of one that there is not', () => {
  const lines = [line(1000n)];
  const credited = new Map([[0, 1000n]]);
  const none = { item: 1, lineIndex: 1, left: 0n };
  expect(creditLines({ lines, credited }, [{ lineIndex: 0, gross: 151n }, { lineIndex: 1 }]).excesses).toEqual([
    { item: 0, lineIndex: 0, left: 150n },
    none,
  ]);
  expect(creditLines({ lines, credited }, [{ lineIndex: 0, gross: 150n }, { lineIndex: 1 }]).excesses).toEqual([none]);
  expect(creditLines({ lines, credited: new Map([[0, 1150n]]) }, [{ lineIndex: 0 }]).excesses).toHaveLength(1);
});

test('a discount is taken back with what it was for, and never alone', () => {
  const lines = [line(10_000n), line(-500n)];
  expect(creditLines({ lines, credited: none }, restOf({ lines, credited: none }))).toMatchObject({
    lines: [
      { net: 10_000n, tax: 1500n, gross: 11_500n },
      { net: -500n, tax: -75n, gross: -575n },
    ],
  });
  expect(creditLines({ lines, credited: none }, [{ lineIndex: 0 }]).excesses).toEqual([
    { item: undefined, lineIndex: undefined, left: 10_925n },
  ]);
  expect(creditLines({ lines, credited: none }, [{ lineIndex: 1 }]).excesses).toHaveLength(1);
  expect(creditLines({ lines, credited: none }, [{ lineIndex: 1, gross: 1n }]).excesses).toMatchObject([
    { lineIndex: 1 },
  ]);
  const credited = new Map([[0, 10_925n]]);
  expect(creditLines({ lines, credited }, restOf({ lines, credited }))).toMatchObject({ excesses: [{ left: 0n }] });
});

test('what is left after any credits is credited by default, discounts too', () => {
  const amounts = fc.array(fc.bigInt({ min: -500n, max: 2000n }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(amounts, fc.nat(5), fc.bigInt({ min: 1n, max: 2000n }), (nets, lineIndex, gross) => {
      const lines = nets.map(line);
      const whole = total(lines.map((each) => each.gross));
      const first = creditLines({ lines, credited: none }, [{ lineIndex, gross }]);
      const before = first.excesses.length === 0 ? gross : 0n;
      const credited = before === 0n ? none : new Map([[lineIndex, before]]);
      const rest = creditLines({ lines, credited }, restOf({ lines, credited }));
      const [given, taken] = [first, rest].map((credit) => credit.lines);
      const left = whole - before;
      expect(total((taken ?? []).map((each) => each.gross))).toBe(left > 0n ? left : 0n);
      const tax = total([...(given ?? []), ...(taken ?? [])].map((each) => each.tax));
      expect(left <= 0n || tax === total(lines.map((each) => each.tax))).toBe(true);
    }),
  );
});

test('amounts must be positive, and each line is said once', () => {
  const invoice = { lines: [line(1000n)], credited: none };
  expect(() => creditLines(invoice, [{ lineIndex: 0, gross: 0n }])).toThrow(RangeError);
  expect(() =>
    creditLines(invoice, [
      { lineIndex: 0, gross: 1n },
      { lineIndex: 0, gross: 1n },
    ]),
  ).toThrow(RangeError);
});

test('a line that is credited in parts is credited to the cent, tax and all', () => {
  const parts = fc.array(fc.bigInt({ min: 1n, max: 500n }), { maxLength: 20 });
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 2000n }), parts, (amount, grosses) => {
      const invoiced = line(amount);
      const notes = [];
      let credited = 0n;
      for (const gross of [...grosses, undefined]) {
        const credit = creditLines({ lines: [invoiced], credited: new Map([[0, credited]]) }, [
          { lineIndex: 0, gross },
        ]);
        if (credit.excesses.length > 0) continue;
        notes.push(...credit.lines);
        credited += total(credit.lines.map((each) => each.gross));
      }
      expect(total(notes.map((note) => note.tax))).toBe(invoiced.tax);
      expect(total(notes.map((note) => note.net))).toBe(invoiced.net);
      for (const note of notes) expect(note.net + note.tax).toBe(note.gross);
    }),
  );
});
