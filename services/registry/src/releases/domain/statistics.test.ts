import { expect, test } from 'vitest';
import type { ServiceUpdates } from './history-store.ts';
import { summarise } from './statistics.ts';

function service(serviceName: string, [successful, failed, rolledBack]: [number, number, number], durationSeconds = 0) {
  const counts: ServiceUpdates = {
    serviceName,
    updates: successful + failed + rolledBack,
    successful,
    failed,
    rolledBack,
    durationSeconds,
  };
  return counts;
}

test('without updates everything is zero', () => {
  expect(summarise([])).toEqual({
    totalUpdates: 0,
    successfulUpdates: 0,
    failedUpdates: 0,
    rolledBackUpdates: 0,
    successRate: 0,
    averageDurationSeconds: 0,
    servicesUpdated: [],
  });
});

test('services are added up and kept in order', () => {
  expect(summarise([service('b', [4, 1, 1], 60), service('a', [1, 0, 0], 40)])).toEqual({
    totalUpdates: 7,
    successfulUpdates: 5,
    failedUpdates: 1,
    rolledBackUpdates: 1,
    successRate: 71.43,
    averageDurationSeconds: 14.286,
    servicesUpdated: [
      { serviceName: 'b', updateCount: 6 },
      { serviceName: 'a', updateCount: 1 },
    ],
  });
});

test.each([
  [[1, 0, 0], 100],
  [[0, 1, 0], 0],
  [[1, 2, 0], 33.33],
  [[2, 0, 1], 66.67],
] as [[number, number, number], number][])('the success rate of %j is %d', (counts, rate) => {
  expect(summarise([service('shop', counts)]).successRate).toBe(rate);
});
