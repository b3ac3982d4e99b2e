import { type DocumentNode, type FieldNode, parse, visit } from 'graphql/index.js';
import { expect, test } from 'vitest';
import { FetchedNames } from './fetched-names.ts';

test.each([
  ['a field', '{ a }', ['a']],
  ['names of clients', '{ x: a a: b a: a }', ['_as1_x_a', '_as1_a_b', 'a']],
  ['arguments', '{ a(n: 1) x: a(n: 1) }', ['a', '_as1_x_a']],
  ['other arguments', '{ a(n: 1) a(n: 2) a a(n: 2) }', ['a', '_as1_1_a_a', '_as1_2_a_a', '_as1_1_a_a']],
  ['in another order', '{ a(n: 1, o: { p: 1, q: [2] }) a(o: { q: [2], p: 1 }, n: 1) }', ['a', 'a']],
  ['by variables', 'query ($v: Int, $w: Int) { a(n: $v) a(n: $w) }', ['a', '_as1_1_a_a']],
  ['in fragments', '{ a ...F } fragment F on T { a(n: 1) }', ['a', '_as1_1_a_a']],
])('names that fields are fetched under: %s', (...[, query, expected]) => {
  const document = parse(query);
  const names = new FetchedNames(document);
  expect(fieldsOf(document).map((node) => names.of(node))).toEqual(expected);
});

function fieldsOf(document: DocumentNode): readonly FieldNode[] {
  const fields: FieldNode[] = [];
  visit(document, { Field: (node) => void fields.push(node) });
  return fields;
}
