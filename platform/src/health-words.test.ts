import { expect, test } from 'vitest';
import { ailmentOf } from './health-words.ts';

test.each(['unhealthy', 'DRAINING', 'Degraded', 'DOWN', 'OUT_OF_SERVICE', 'STARTING', 'critical', 'failing', 'error'])(
  'who says %s is not well',
  (word) => {
    expect(ailmentOf(word, 'Passing')).toBe('report');
  },
);

test.each(['healthy', 'UP', 'passing', 'serving', 'busy', '', undefined])('%s says nothing against it', (word) => {
  expect(ailmentOf(word, undefined)).toBeUndefined();
  expect(ailmentOf(word, 'Failing')).toBe('check');
});
