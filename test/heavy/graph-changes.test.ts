import { expect, test } from 'vitest';
import { changeUnderLoad } from '../federation/changes-under-load.ts';

test('no query fails while the graph changes a thousand times, and no graph is kept', async () => {
  const { wrong, queries, generation, schemasLeft } = await changeUnderLoad(1000);
  console.log(`${queries} queries`);
  expect(wrong).toEqual([]);
  expect(generation).toBe(1002);
  await expect.poll(schemasLeft).toBeLessThan(20);
});
