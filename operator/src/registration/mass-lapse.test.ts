import { expect, test } from 'vitest';
import { createMassLapse } from './mass-lapse.ts';

/** @returns after how many expiries a mass lapse was reported, each time. */
function lapse(total: number, expiries: number, everyMs: number): number[] {
  const massLapse = createMassLapse();
  const told: number[] = [];
  for (let index = 1; index <= expiries; index += 1) {
    if (massLapse.expired(total - index, index * everyMs) !== undefined) told.push(index);
  }
  return told;
}

test.each([
  { sentence: 'a hundred at once are too few', total: 100, expiries: 100, everyMs: 1, told: [] },
  { sentence: 'the 101st of a few hundred makes it one', total: 300, expiries: 300, everyMs: 1, told: [101] },
  { sentence: 'of ten thousand it takes a fifth', total: 10_000, expiries: 10_000, everyMs: 1, told: [2001] },
  { sentence: 'a tenth of ten thousand is none', total: 10_000, expiries: 1000, everyMs: 1, told: [] },
  {
    sentence: 'one that goes on at a pace around the fifth is reported once',
    total: 10_000,
    expiries: 10_000,
    everyMs: 10,
    told: [6001],
  },
  { sentence: 'the same number spread over time is none', total: 300, expiries: 300, everyMs: 1000, told: [] },
])('$sentence', ({ total, expiries, everyMs, told }) => {
  expect(lapse(total, expiries, everyMs)).toEqual(told);
});

test('a second one is reported again once the first is over', () => {
  const massLapse = createMassLapse();
  const told: number[] = [];
  for (const start of [0, 60_000]) {
    for (let index = 0; index < 200; index += 1) {
      if (massLapse.expired(100, start + index) !== undefined) told.push(start);
    }
  }
  expect(told).toEqual([0, 60_000]);
});
