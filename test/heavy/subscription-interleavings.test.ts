import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyBeginning, anySteps, runModel } from '../payment/model/subscription-model.ts';

test('a million interleavings charge no period twice, refund no more than was paid, and end', () => {
  fc.assert(
    fc.property(anyBeginning, anySteps, (beginning, steps) => {
      expect(runModel(beginning, steps)).toBeUndefined();
    }),
    { numRuns: 1_000_000 },
  );
});
