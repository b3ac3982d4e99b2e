import { expect, test } from 'vitest';
import type { ServiceUpdates } from '../domain/history-store.ts';
import { statisticsRecord } from './history-schemas.ts';

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
  expect(statisticsRecord([])).toEqual({
    total_updates: 0,
    successful_updates: 0,
    failed_updates: 0,
    rolled_back_updates: 0,
    success_rate: 0,
    average_duration_seconds: 0,
    services_updated: [],
  });
});

test('services are added up and kept in order', () => {
  expect(statisticsRecord([service('b', [4, 1, 1], 60), service('a', [1, 0, 0], 40)])).toEqual({
    total_updates: 7,
    successful_updates: 5,
    failed_updates: 1,
    rolled_back_updates: 1,
    success_rate: 71.43,
    average_duration_seconds: 14.286,
    services_updated: [
      { service_name: 'b', update_count: 6 },
      { service_name: 'a', update_count: 1 },
    ],
  });
});

test.each([
  [[1, 0, 0], 100],
  [[0, 1, 0], 0],
  [[1, 2, 0], 33.33],
  [[2, 0, 1], 66.67],
] as [[number, number, number], number][])('the success rate of %j is %d', (counts, rate) => {
  expect(statisticsRecord([service('shop', counts)]).success_rate).toBe(rate);
});
