import { expect, test } from 'vitest';
import { readTogether } from './read-together.ts';

test('what is asked for in one turn is read at once, and each gets its own', async () => {
  const reads: (readonly string[])[] = [];
  const valuesOf = readTogether(async (ids) => {
    reads.push(ids);
    return new Map(ids.filter((id) => id !== 'none').map((id) => [id, [`of ${id}`]]));
  });
  expect(await Promise.all(['a', 'none', 'b'].map(valuesOf))).toEqual([['of a'], [], ['of b']]);
  expect(await valuesOf('c')).toEqual(['of c']);
  expect(reads).toEqual([['a', 'none', 'b'], ['c']]);
});

test('a failure is that of all who asked in its turn, and of no other', async () => {
  let isBroken = true;
  const valuesOf = readTogether<string>(async () => {
    if (isBroken) throw new Error('The database is away');
    return new Map();
  });
  const [one, two] = await Promise.allSettled([valuesOf('a'), valuesOf('b')]);
  expect([one?.status, two?.status]).toEqual(['rejected', 'rejected']);
  isBroken = false;
  expect(await valuesOf('a')).toEqual([]);
});
