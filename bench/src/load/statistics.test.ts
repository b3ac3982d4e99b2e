import { expect, it } from 'vitest';
import { mean, median, quantile } from './statistics.ts';

it('computes quantiles by nearest rank, whatever the order', () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(quantile(values, 0.99)).toBe(99);
  expect(quantile(values, 1)).toBe(100);
  expect(quantile(values, 0)).toBe(1);
  expect(median([3, 1, 2])).toBe(2);
});

it('has no quantile and no mean of nothing', () => {
  expect(quantile([], 0.5)).toBeNaN();
  expect(mean([])).toBeNaN();
});
