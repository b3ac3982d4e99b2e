import { expect, test } from 'vitest';
import { createRetryBudget } from './retry-budget.ts';

test('the reserve, and a share of what comes', () => {
  const budget = createRetryBudget(0.25, 2);
  const retries = (count: number) => Array.from({ length: count }, () => budget.tryWithdraw()).filter(Boolean).length;
  expect(retries(5)).toBe(2);
  for (let count = 0; count < 4; count += 1) budget.deposit();
  expect(retries(5)).toBe(1);
  for (let count = 0; count < 1000; count += 1) budget.deposit();
  expect(retries(100)).toBe(4);
});
