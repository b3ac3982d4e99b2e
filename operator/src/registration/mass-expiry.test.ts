import { expect, test } from 'vitest';
import { createMassExpiry } from './mass-expiry.ts';

/** @returns after how many expiries a mass expiry was reported, each time. */
function expire(total: number, expiries: number, everyMs: number): number[] {
  const massExpiry = createMassExpiry();
  const reported: number[] = [];
  for (let index = 1; index <= expiries; index += 1) {
    if (massExpiry.expired(total - index, index * everyMs) !== undefined) reported.push(index);
  }
  return reported;
}

test.each([
  { sentence: 'a hundred at once are too few', total: 100, expiries: 100, everyMs: 1, reported: [] },
  { sentence: 'the 101st of a few hundred makes it one', total: 300, expiries: 300, everyMs: 1, reported: [101] },
  { sentence: 'of ten thousand a fifth is needed', total: 10_000, expiries: 10_000, everyMs: 1, reported: [2001] },
  { sentence: 'a tenth of ten thousand is none', total: 10_000, expiries: 1000, everyMs: 1, reported: [] },
  {
    sentence: 'one that goes on at a pace around the fifth is reported once',
    total: 10_000,
    expiries: 10_000,
    everyMs: 10,
    reported: [6001],
  },
  { sentence: 'the same number spread over time is none', total: 300, expiries: 300, everyMs: 1000, reported: [] },
])('$sentence', ({ total, expiries, everyMs, reported }) => {
  expect(expire(total, expiries, everyMs)).toEqual(reported);
});

test('a second one is reported again once the first is over', () => {
  const massExpiry = createMassExpiry();
  const reported: number[] = [];
  for (const start of [0, 60_000]) {
    for (let index = 0; index < 200; index += 1) {
      if (massExpiry.expired(100, start + index) !== undefined) reported.push(start);
    }
  }
  expect(reported).toEqual([0, 60_000]);
});
