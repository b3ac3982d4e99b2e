import { expect, test } from 'vitest';
import { passedCode } from './close-codes.ts';

test.each([
  [1000, 1000],
  [1011, 1011],
  [1012, 1012],
  [3000, 3000],
  [4999, 4999],
  // There was none.
  [1005, undefined],
  // Nobody may send them.
  [1006, 1014],
  [1015, 1014],
  [2999, 1014],
])('where one side ends with %d the other gets %d', (code, passed) => {
  expect(passedCode(code, 1014)).toBe(passed);
});
