import { array, assert, constantFrom, nat, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { type Link, LinkedList } from './linked-list.ts';

test('is as a Set is, whatever comes and goes', () => {
  const step = record({ what: constantFrom('add' as const, 'unlink' as const), which: nat(20) });
  assert(
    property(array(step, { maxLength: 100 }), (steps) => {
      const list = new LinkedList<number>();
      const set = new Set<number>();
      const links: Link<number>[] = [];
      for (const { what, which } of steps) {
        if (what === 'add') {
          links.push(list.add(links.length));
          set.add(links.length - 1);
        } else {
          links[which]?.unlink();
          set.delete(which);
        }
        expect(list.links().map(({ value }) => value)).toEqual([...set]);
        expect(list.isEmpty).toBe(set.size === 0);
        expect(list.size).toBe(set.size);
        expect(list.first).toBe([...set][0]);
        expect(links.filter(({ isLinked }) => isLinked).map(({ value }) => value)).toEqual([...set]);
      }
    }),
  );
});
