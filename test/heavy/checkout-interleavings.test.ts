import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCheckoutSteps, anyPolicy, runCheckout } from '../payment/model/checkout-model.ts';

test('a million interleavings of a checkout count no money twice, give back no more than came, and end', () => {
  fc.assert(
    fc.property(anyPolicy, anyCheckoutSteps, (policy, steps) => {
      expect(runCheckout(policy, steps)).toBeUndefined();
    }),
    { numRuns: 1_000_000 },
  );
});
