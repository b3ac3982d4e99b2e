import { buildASTSchema, parse, printSchema } from 'graphql/index.js';
import { describe, expect, test } from 'vitest';
import { compose } from '../composition/compose.ts';
import { type ContractFilter, contractDocument } from './contract.ts';
import { publicDocument } from './public-document.ts';

const LINK = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3",
  import: ["@key", "@tag", "@shareable", "@inaccessible"])`;

/** What clients of a contract see, on one line. */
function seen(sdl: string, filter: Partial<ContractFilter>): string | undefined {
  const { supergraph, errors } = compose([{ name: 'shop', url: 'http://shop', sdl: `${LINK} ${sdl}` }]);
  if (supergraph === undefined) throw new Error(JSON.stringify(errors));
  const document = parse(supergraph);
  const contract = contractDocument(publicDocument(document), document, {
    include: [],
    exclude: [],
    ...filter,
  });
  return contract && printSchema(buildASTSchema(contract)).replaceAll(/\s+/g, ' ');
}

const shop = `
  type Query { me: User @tag(name: "public") other: Other orders(by: Sort @tag(name: "internal"), first: Int): [Order!] }
  type User { id: ID! @tag(name: "public") email: String @tag(name: "internal") role: Role @tag(name: "public") }
  type Order @tag(name: "internal") { id: ID! }
  type Other { order: Order text: String sort(by: Sort!): String }
  enum Role { USER ADMIN @tag(name: "internal") }
  input Sort { by: String! @tag(name: "internal") up: Boolean }
`;

describe('a contract', () => {
  test('has what its tags include, and what that needs', () => {
    expect(seen(shop, { include: ['public'] })).toBe(
      'type Query { me: User } type User { id: ID! role: Role } enum Role { USER ADMIN }',
    );
  });

  test('has nothing of what its tags exclude, nor what leads there or cannot be without', () => {
    expect(seen(shop, { exclude: ['internal'] })).toBe(
      'type Query { me: User other: Other } type User { id: ID! role: Role } type Other { text: String } enum Role { USER }',
    );
  });

  test('excludes what is both', () => {
    expect(seen(shop, { include: ['public', 'internal'], exclude: ['internal'] })).toBe(
      'type Query { me: User } type User { id: ID! role: Role } enum Role { USER }',
    );
  });

  test('has all of a type that has the tag', () => {
    const sdl = 'type Query { a: A @tag(name: "x") b: Int } type A @tag(name: "x") { n: Int m: B } type B { k: Int }';
    expect(seen(sdl, { include: ['x'] })).toBe('type Query { a: A } type A { n: Int }');
  });

  test('is none without a query', () => {
    expect(seen(shop, { include: ['nobody'] })).toBeUndefined();
    expect(seen(`${shop} type Mutation { a: Int @tag(name: "only") }`, { include: ['only'] })).toBeUndefined();
  });

  test('with every filter empty is the graph', () => {
    const filtered = seen(shop, {});
    expect(filtered).toContain('orders(by: Sort, first: Int): [Order!]');
    expect(filtered).toContain('email: String');
  });
});

test('a union loses members, and an interface those that lack a field of it', () => {
  const sdl = `type Query { hits: [Hit!] nodes: [Node!] }
    union Hit = A | B | C
    interface Node { id: ID! }
    type A implements Node { id: ID! } type B implements Node { id: ID! @tag(name: "internal") n: Int }
    type C @tag(name: "internal") { n: Int }`;
  expect(seen(sdl, { exclude: ['internal'] })).toBe(
    'type Query { hits: [Hit!] nodes: [Node!] } type A implements Node { id: ID! } type B { n: Int } interface Node { id: ID! } union Hit = A | B',
  );
});

test('types that lead to each other alone are gone', () => {
  const sdl = `type Query { a: Int loop: L @tag(name: "internal") } type L { l: L m: M } type M { l: L }`;
  expect(seen(sdl, { exclude: ['internal'] })).toBe('type Query { a: Int }');
});

test('a directive whose type is gone is gone, too', () => {
  const graph = parse(`directive @audit(level: Level) on FIELD directive @plain(text: String) on FIELD
    type Query { a: Int } enum Level { HIGH }`);
  const contract = contractDocument(graph, graph, { include: [], exclude: [] }) ?? graph;
  const schema = buildASTSchema(contract);
  expect([schema.getDirective('audit'), schema.getType('Level')]).toEqual([undefined, undefined]);
  expect(schema.getDirective('plain')).toBeDefined();
});
