import { expect, test } from 'vitest';
import { canaryReplicas } from './canary-replicas.ts';

test.for([
  [10, 0, 0],
  [10, 1, 1],
  [10, 5, 1],
  [10, 10, 1],
  [10, 25, 3],
  [10, 50, 10],
  [10, 75, 30],
  [10, 90, 40],
  [10, 99, 40],
  [10, 100, 10],
  [3, 1, 1],
  [3, 10, 1],
  [3, 25, 1],
  [3, 50, 3],
  [3, 80, 12],
  [1, 50, 1],
  [100, 20, 25],
  [0, 50, 0],
  [0, 100, 0],
] as const)('beside %i stable pods a canary of %i %% has %i', ([stable, weight, expected]) => {
  expect(canaryReplicas(stable, weight)).toBe(expected);
});
