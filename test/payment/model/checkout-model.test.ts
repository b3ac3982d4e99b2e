import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCheckoutSteps, anyPolicy, runCheckout } from './checkout-model.ts';

test('no interleaving of a checkout counts money twice, gives back more than came, or leaves it open', () => {
  fc.assert(
    fc.property(anyPolicy, anyCheckoutSteps, (policy, steps) => {
      expect(runCheckout(policy, steps)).toBeUndefined();
    }),
    { numRuns: 20_000 },
  );
});
