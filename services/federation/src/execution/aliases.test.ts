import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../testing/federate.ts';

describe('names that a client gives to fields', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Item @key(fields: "id") { id: ID! price: Int owner: Owner } type Owner { name: String }`,
      resolvers: { Item: { price: ({ id }) => (id === '1' ? 100 : 0), owner: () => ({ name: 'Olga' }) } },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { items: [Item!]! }
        type Item @key(fields: "id") { id: ID! price: Int @external name: String label: String @requires(fields: "price") }`,
      resolvers: {
        Query: { items: () => [{ id: '1', name: 'Lamp' }] },
        Item: {
          __resolveReference: (known) => ({ ...known, name: 'Lamp' }),
          label: ({ price }) => `for ${String(price)}`,
        },
      },
    },
  });

  test.each([
    ['of a required field', '{ price: name label }', { price: 'Lamp', label: 'for 100' }],
    ['of a required field, for the key', '{ price: id label }', { price: '1', label: 'for 100' }],
    ['of the key', '{ id: name label }', { id: 'Lamp', label: 'for 100' }],
    ['of the key, and a hop', '{ id: name price }', { id: 'Lamp', price: 100 }],
    [
      'of each other',
      '{ name: id id: name price: label label: price }',
      { name: '1', id: 'Lamp', price: 'for 100', label: 100 },
    ],
    ['of type names', '{ __typename: name t: __typename price }', { __typename: 'Lamp', t: 'Item', price: 100 }],
    [
      'of helpers of the plan',
      '{ _internal_qp_alias_0: name id: price label }',
      { _internal_qp_alias_0: 'Lamp', id: 100, label: 'for 100' },
    ],
    [
      'of objects',
      '{ name: owner { price: name id: name } price: name }',
      { name: { price: 'Olga', id: 'Olga' }, price: 'Lamp' },
    ],
  ])('may be those %s', async (...[, fields, item]) => {
    expect(await graph.ask(`{ items ${fields} }`)).toEqual({ data: { items: [item] } });
  });

  test('are in the paths of errors', async () => {
    graph.interfere = ({ subgraph, query }) => {
      if (subgraph === 'b') return undefined;
      const [, key = ''] = /(\w+): owner/.exec(query) ?? [];
      const error = { message: 'nobody', path: ['_entities', 0, key, 'name'] };
      return { data: { _entities: [{ [key]: { name: null } }] }, errors: [error] };
    };
    const { data, errors } = await graph.ask('{ them: items { price: owner { name } } }');
    graph.interfere = undefined;
    expect(data).toEqual({ them: [{ price: { name: null } }] });
    expect(errors?.map(({ path }) => path)).toEqual([['them', 0, 'price', 'name']]);
  });
});
