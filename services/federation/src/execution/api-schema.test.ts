import { buildSchema, type GraphQLSchema, isObjectType, printSchema } from 'graphql/index.js';
import { expect, test } from 'vitest';
import { compose } from '../composition/compose.ts';
import { FEDERATION_2 } from '../testing/federate.ts';
import { allSteps } from '../testing/steps.ts';
import { apiSchemaSteps } from './api-schema.ts';
import { readGraph } from './graph-source.ts';

/** Types that lead to one another, of all kinds, enough of them for several pieces. */
const many = Array.from(
  { length: 400 },
  (
    _,
    n,
  ) => `"""Number ${n}""" type T${n} implements Node { id: ID! next(size: Size = LARGE, of: In): [T${(n + 1) % 400}!]
    old: String @deprecated(reason: "no") }`,
);
const sdl = `${FEDERATION_2} type Query { first: T0 any: Any } type Mutation { go: Time } interface Node { id: ID! }
  union Any = T0 | T1 enum Size { SMALL LARGE @deprecated } input In { a: Int = 7, b: [In!] }
  scalar Time @specifiedBy(url: "https://example.org/time") type Secret @inaccessible { id: ID } ${many.join('\n')}`;

function pieces(): readonly string[] {
  const { supergraph = '' } = compose([{ name: 'all', url: 'http://all', sdl }]);
  return readGraph(supergraph, {}).pieces;
}

test('it is as if it were built at once', () => {
  const built: GraphQLSchema = allSteps(apiSchemaSteps(pieces()));
  expect(printSchema(built)).toBe(printSchema(buildSchema(pieces().join('\n'))));
  expect(built.getType('Secret')).toBeUndefined();
  expect(printSchema(built)).toContain('next(size: Size = LARGE, of: In): [T1!]');
});

test('it takes many steps, and keeps nothing of the documents', () => {
  const steps = apiSchemaSteps(pieces());
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count += 1;
  expect(count).toBeGreaterThan(6);
  const type = step.value.getType('T7');
  if (!isObjectType(type)) throw new Error('There is no T7');
  const { next } = type.getFields();
  expect([type.astNode, next?.astNode, next?.args[0]?.astNode]).toEqual([undefined, undefined, undefined]);
});
