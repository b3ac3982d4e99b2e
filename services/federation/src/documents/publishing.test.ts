import { expect, test } from 'vitest';
import { contentHash, documentIdOf, publishing } from './publishing.ts';

test('white space, commas and comments do not matter, and all else does', () => {
  const hash = contentHash('query A($n: Int) { a(first: $n) { id, name } }');
  expect(contentHash('# It is ours\nquery A($n:Int){\n\ta(first:$n) { id\r\n name }\n}\n')).toBe(hash);
  expect(contentHash('query A($n: Int) { a(first: $n) { name, id } }')).not.toBe(hash);
  expect(contentHash('{ a(text: "b  c") }')).not.toBe(contentHash('{ a(text: "b c") }'));
});

test('an id may have its kind in front', () => {
  expect([documentIdOf('sha256:ab'), documentIdOf('x:ab')]).toEqual(['ab', 'x:ab']);
  const { documents } = publishing({ 'sha256:ab': '{ a }' }, 10);
  expect(documents).toEqual([{ id: 'ab', hash: contentHash('{a}'), document: '{ a }' }]);
});

test('all documents that are none are told at once', () => {
  const { documents, faults } = publishing(
    {
      good: 'query A { a } fragment F on B { c }',
      syntax: '{ a',
      long: '{ a a a a a a a a a a a }',
      schema: 'type A { b: Int } query { a }',
      text: '{ a } # \u0000',
    },
    12,
  );
  expect(documents.map(({ id }) => id)).toEqual(['good']);
  expect(faults.map(({ path }) => path)).toEqual(
    ['syntax', 'long', 'schema', 'text'].map((id) => `body/documents/${id}`),
  );
  expect(faults[0]?.message).toContain('Syntax Error');
});
