import { expect, test } from 'vitest';
import { compareSettlements, type SettledMoney, settledBy } from './settlement-check.ts';

const hour = (hours: number): Date => new Date(Date.UTC(2026, 10, 27) + hours * 3_600_000);
const span = { from: hour(0), to: hour(24) };
const paid: SettledMoney = {
  kind: 'payment',
  chargeRef: 'ch_1',
  paymentId: 'p1',
  amount: 14_950n,
  currency: 'ZAR',
  at: hour(1),
};
const back: SettledMoney = { ...paid, kind: 'refund', amount: -950n, at: hour(2) };

test('what both sides have is matched, whatever their clocks and their order', () => {
  const books = [{ ...back, at: hour(-1) }, paid];
  expect(compareSettlements([paid, back], books, span)).toEqual({ matched: 2, missingHere: [], missingAtProvider: [] });
});

test('what one side has alone is named, and so is what differs', () => {
  const other = { ...paid, chargeRef: 'ch_2' };
  const wrong = { ...back, amount: -951n };
  expect(compareSettlements([paid, other, back], [paid, wrong], span)).toEqual({
    matched: 1,
    missingHere: [other, back],
    missingAtProvider: [wrong],
  });
});

test('two refunds of the same amount are two', () => {
  expect(compareSettlements([back, back], [back], span)).toMatchObject({ matched: 1, missingHere: [back] });
});

test('what is outside of the days is no difference', () => {
  const before = { ...paid, at: hour(-1) };
  const after = { ...paid, chargeRef: 'ch_9', at: hour(24) };
  expect(compareSettlements([before], [after], span)).toEqual({ matched: 0, missingHere: [], missingAtProvider: [] });
});

test('of a list, fees and payouts are left out', () => {
  const line = { at: hour(1), currency: 'ZAR', gross: 14_950n, fee: -350n, net: 14_600n, chargeRef: 'ch_1' };
  expect(
    settledBy([
      { ...line, kind: 'payment', paymentId: 'p1' },
      { ...line, kind: 'other' },
    ]),
  ).toEqual([paid]);
});
