import { expect, test } from 'vitest';
import { acceptedLanguages } from './accept-language.ts';

test.each([
  [undefined, []],
  ['', []],
  ['*', []],
  ['af-ZA, af;q=0.9, en;q=0.8', ['af-ZA', 'af', 'en']],
  ['en;q=0.2,pt-BR;q=0.7 , de', ['de', 'pt-BR', 'en']],
  ['fr;q=0, nl;q=x, it ;q=0.5', ['it']],
])('of %j the languages are %j', (header, languages) => {
  expect(acceptedLanguages(header)).toEqual(languages);
});

test('a header that is long is read in no time, and not to its end', () => {
  expect(acceptedLanguages('de-'.repeat(100_000))).toHaveLength(1);
  expect(acceptedLanguages('de,'.repeat(100_000))).toHaveLength(20);
});
