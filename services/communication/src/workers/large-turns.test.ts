import { beforeEach, expect, test } from 'vitest';
import { createLargeTurns, type LargeTurn } from './large-turns.ts';

const MIB = 2 ** 20;
let nowMs = 0;
let turns = createLargeTurns({ now: () => new Date(nowMs), monotonicMs: () => nowMs });

beforeEach(() => {
  nowMs = 0;
  turns = createLargeTurns({ now: () => new Date(nowMs), monotonicMs: () => nowMs });
});

const ask = (id: string, mib: number) => turns.tryEnter({ id, contentBytes: mib * MIB });
const leave = (turn: LargeTurn) => {
  if ('leave' in turn) turn.leave();
  else throw new Error('had no turn');
};

test('as many have a turn as fit together, and one alone whatever its size', () => {
  const huge = ask('huge', 20);
  expect(ask('other', 1)).toEqual({ backInMs: 250 });
  leave(huge);
  leave(ask('other', 1));
  expect([ask('a', 8), ask('b', 8)].every((turn) => 'leave' in turn)).toBe(true);
  expect(ask('c', 1)).toEqual({ backInMs: 250 });
});

test('those that wait come back one after the other', () => {
  ask('a', 16);
  expect(['b', 'c', 'd'].map((id) => ask(id, 3))).toEqual([{ backInMs: 250 }, { backInMs: 250 }, { backInMs: 500 }]);
});

test('the first that waits keeps its place, whatever smaller ones would still fit', () => {
  const [a, b] = [ask('a', 6), ask('b', 6)];
  expect(ask('large', 14)).toEqual({ backInMs: 250 });
  leave(a);
  expect(ask('small', 3)).toEqual({ backInMs: 250 });
  nowMs += 250;
  expect(ask('large', 14)).toEqual({ backInMs: 250 });
  leave(b);
  expect('backInMs' in ask('small', 3)).toBe(true);
  leave(ask('large', 14));
  leave(ask('small', 3));
});

test('a place is free again where nobody comes back for it', () => {
  leave(ask('a', 6));
  const b = ask('b', 6);
  ask('gone', 14);
  nowMs += 4999;
  expect('backInMs' in ask('small', 3)).toBe(true);
  nowMs += 1;
  leave(ask('small', 3));
  leave(b);
});
