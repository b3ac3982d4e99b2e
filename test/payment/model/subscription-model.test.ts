import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyBeginning, anySteps, runModel } from './subscription-model.ts';

test('no interleaving charges a period twice, refunds more than was paid, or leaves an outcome open', () => {
  fc.assert(
    fc.property(anyBeginning, anySteps, (beginning, steps) => {
      expect(runModel(beginning, steps)).toBeUndefined();
    }),
    { numRuns: 20_000 },
  );
});
