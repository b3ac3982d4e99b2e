import { buildSchema } from 'graphql/index.js';
import { expect, test } from 'vitest';
import { storedOperation } from './stored-operation.ts';

const schema = buildSchema(`
  type Query { user(id: ID!, in: Where): User node: Node search(words: [String!]): [Hit!] }
  interface Node { id: ID! }
  type User implements Node { id: ID! name(short: Boolean): String color: Color }
  union Hit = User
  input Where { city: String color: Color near: Where }
  enum Color { RED GREEN }
  directive @client(word: String) on FIELD
`);

const stored = (text: string, name?: string) => storedOperation(text, name, schema);

test('an operation is kept without what was asked about', () => {
  const { document } =
    stored(
      '{ user(id: "erna", in: {city: """Hidden Lane""", color: RED}) { name } search(words: ["secret", "42"]) { __typename } }',
    ) ?? {};
  expect(document).toContain('color: RED');
  expect(document).not.toMatch(/erna|Hidden|secret|42/);
  expect(stored('{ user(id: 4711) { id } }')?.hash).toBe(stored('{user(id:12){id}}')?.hash);
});

test('only what was executed is kept', () => {
  const text = 'query A { user(id: 1) { ...N } } query B { node { id } } fragment N on User { name }';
  expect(stored(text, 'A')).toMatchObject({ name: 'A', coordinates: ['Query.user', 'Query.user(id:)', 'User.name'] });
  expect(stored(text, 'B')?.document).not.toContain('fragment');
  expect(stored(text, 'C')).toBeUndefined();
  expect(stored('{ node { id } }')?.name).toBeNull();
  expect(stored('query Only { node { id } }')?.name).toBe('Only');
});

test.each([
  [
    '{ node { id __typename ... on User { name(short: true) @client(word: "x") } } }',
    'Node.id Query.node User.name User.name(short:)',
  ],
  [
    'query ($in: Where, $id: ID!) { user(id: $id, in: $in) { id } }',
    'ID Query.user Query.user(id:) Query.user(in:) User.id Where',
  ],
  [
    '{ user(id: 1, in: {near: {color: GREEN}}) { id } }',
    'Color.GREEN Query.user Query.user(id:) Query.user(in:) User.id Where.color Where.near',
  ],
  ['query ($words: [String!]) { search(words: $words) { __typename } }', 'Query.search Query.search(words:) String'],
])('%s uses %s', (text, coordinates) => {
  expect(stored(text)?.coordinates.join(' ')).toBe(coordinates);
});
