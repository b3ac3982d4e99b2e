import { expect, test } from 'vitest';
import { createBulkhead } from './bulkhead.ts';

test('refuses what is over the limit at once, and takes more when some has ended, in whatever way', async () => {
  const bulkhead = createBulkhead(2);
  const gate = Promise.withResolvers<string>();
  const first = [bulkhead.run(() => gate.promise), bulkhead.run(() => gate.promise)];
  await expect(bulkhead.run(async () => 'third')).rejects.toMatchObject({ code: 'OVERLOADED' });
  gate.reject(new Error('store away'));
  await Promise.allSettled(first);
  expect(await bulkhead.run(async () => 'fourth')).toBe('fourth');
  expect(bulkhead.runs).toBe(4);
});
