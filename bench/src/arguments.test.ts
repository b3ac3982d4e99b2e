import { expect, it } from 'vitest';
import { parseArguments } from './arguments.ts';

const known = ['lookups', 'soak'];

it('reads names and options', () => {
  expect(parseArguments(['soak', '--minutes', '0.5'], known)).toEqual({
    help: false,
    names: ['soak'],
    services: 10_000,
    perName: 1,
    minutes: 0.5,
  });
});

it.each([
  [['nothing'], 'There are: lookups, soak'],
  [['--minutes', 'ten'], "not 'ten'"],
  [['--services', '1.5'], 'whole number'],
  [['--per-name', '0'], "not '0'"],
  [['--service', '5'], '--service'],
])('refuses %j', (args, message) => {
  expect(() => parseArguments(args, known)).toThrow(message);
});
