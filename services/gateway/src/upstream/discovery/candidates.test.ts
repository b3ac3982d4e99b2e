import { expect, test } from 'vitest';
import { candidatesOf, draw, isLessBusy, rampedWeight } from './candidates.ts';
import type { Endpoint } from './endpoint.ts';
import { placeOf } from './endpoint.ts';
import { countsOf, testEndpoints } from './testing/test-endpoints.ts';

function endpointOf(weight: number, underWay = 0, address = String(weight)): Endpoint {
  const { endpoints } = testEndpoints();
  endpoints.moveTo([placeOf('http://shop')]);
  const made = endpoints.acquire();
  if (made === undefined) throw new Error('It takes no request');
  return { ...made, address, weight, underWay };
}

test('each is drawn in proportion to its weight', () => {
  const candidates = candidatesOf([endpointOf(1), endpointOf(1000), endpointOf(99)]);
  const drawn = Array.from({ length: 1100 }, (_, index) => draw(candidates, index / 1100)?.address ?? 'none');
  expect(countsOf(drawn)).toEqual({ 1: 1, 1000: 1000, 99: 99 });
  expect(draw(candidatesOf([]), 0.5)).toBeUndefined();
});

test.each([
  { what: 'an idle one', endpoint: endpointOf(100, 0), other: endpointOf(100, 1), isLess: true },
  { what: 'not one that has as many', endpoint: endpointOf(100, 1), other: endpointOf(100, 1), isLess: false },
  { what: 'not an idle one of a tenth', endpoint: endpointOf(10, 0), other: endpointOf(100, 4), isLess: false },
  {
    what: 'an idle one of a tenth, against five',
    endpoint: endpointOf(10, 0),
    other: endpointOf(100, 5),
    isLess: true,
  },
  { what: 'one of ten times that has nine', endpoint: endpointOf(1000, 9), other: endpointOf(100, 1), isLess: true },
])('less busy for its weight: $what', ({ endpoint, other, isLess }) => {
  expect(isLessBusy(endpoint, other)).toBe(isLess);
});

test.each([
  ['at once a tenth', 0, 10],
  ['half way', 15_000, 55],
  ['at the end all', 30_000, 100],
  ['who was always there all', Number.POSITIVE_INFINITY, 100],
])('a weight grows: %s', (_, ageMs, expected) => {
  expect(rampedWeight(100, ageMs, 30_000)).toBeCloseTo(expected);
});

test('without a slow start a weight does not grow', () => {
  expect(rampedWeight(100, 0, 0)).toBe(100);
});
