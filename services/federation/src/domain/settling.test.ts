import { describe, expect, test } from 'vitest';
import { compose as composeNow, LIMIT_CODE, type SubgraphSource } from '../composition/compose.ts';
import { subgraph } from '../testing/subgraphs.ts';
import { type Settled, settle } from './settling.ts';
import type { Subgraph } from './subgraphs.ts';

const users = 'type Query { user: User } type User @key(fields: "id") { id: ID! name: String }';
/** Composes only with users: its type has no base. */
const reviews =
  'extend type User @key(fields: "id") { id: ID! @external reviews: [String] @requires(fields: "name") name: String @external }';
const products = 'type Query { product: Product } type Product { sku: ID! }';
/** Has another type for a field of products. */
const broken = 'type Query { product: [Int] }';
const garbage = 'type Query {';

const compose = async (sources: readonly SubgraphSource[]) => composeNow(sources);

async function settled(...subgraphs: readonly Subgraph[]): Promise<Settled> {
  return settle(new Map(subgraphs.map((each) => [each.service, each])), compose);
}

/** Of each service in the graph whether it is there with its newest schema, or is held. */
function standing({ subgraphs }: Settled): Record<string, string> {
  const words = [...subgraphs.values()].map(({ service, sdl, goodSdl, errors }) => {
    if (goodSdl === sdl) return [service, errors.length === 0 ? 'newest' : 'with errors'];
    return [service, `${goodSdl === null ? 'out' : 'older'}${errors.length === 0 ? ' without a reason' : ''}`];
  });
  return Object.fromEntries(words);
}

describe('the graph', () => {
  test('has all schemas that compose', async () => {
    const result = await settled(subgraph('users', users), subgraph('products', products));
    expect(standing(result)).toEqual({ users: 'newest', products: 'newest' });
    expect(result.supergraph).toContain('type Product');
    expect(result.supergraph).toContain('"http://users/graphql"');
  });

  test('is empty without services', async () => {
    expect(await settled()).toEqual({ subgraphs: new Map(), supergraph: '' });
    expect((await settled(subgraph('users', users, { isLeftOut: true }))).supergraph).toBe('');
  });

  test.each([
    garbage,
    '',
    '{'.repeat(100_000),
    'type Query {}',
    'type Query { a: Missing }',
    'type Query { a: Int a: Int }',
  ])('leaves out the schema %.20s and says why', async (sdl) => {
    const result = await settled(subgraph('users', users, { goodSdl: users }), subgraph('new', sdl));
    expect(standing(result)).toEqual({ users: 'newest', new: 'out' });
    expect(result.supergraph).toContain('type User');
  });

  test('goes on with the last good schema of a service whose new one does not compose', async () => {
    const result = await settled(subgraph('products', garbage, { goodSdl: products }), subgraph('users', users));
    expect(standing(result)).toEqual({ products: 'older', users: 'newest' });
    expect(result.supergraph).toContain('type Product');
  });

  test('waits for what a schema needs, and takes both then', async () => {
    const first = await settled(subgraph('reviews', reviews));
    expect(standing(first)).toEqual({ reviews: 'out' });
    expect(first.supergraph).toBe('');
    const both = await settled(...first.subgraphs.values(), subgraph('users', users));
    expect(standing(both)).toEqual({ reviews: 'newest', users: 'newest' });
  });

  test('takes services that need one another also where a third is broken', async () => {
    const held = subgraph('broken', garbage, { updatedAt: new Date(1) });
    const result = await settled(held, subgraph('reviews', reviews), subgraph('users', users));
    expect(standing(result)).toEqual({ broken: 'out', reviews: 'newest', users: 'newest' });
  });

  test('takes each new one that fits where several do not', async () => {
    const inForce = subgraph('products', products, { goodSdl: products });
    const others = [subgraph('broken', broken), subgraph('garbage', garbage), subgraph('users', users)];
    expect(standing(await settled(inForce, ...others))).toEqual({
      products: 'newest',
      broken: 'out',
      garbage: 'out',
      users: 'newest',
    });
  });

  test('stays as it is where the rest does not compose without a service that has gone', async () => {
    const result = await settled(subgraph('reviews', reviews, { goodSdl: reviews }));
    expect(result.supergraph).toBeUndefined();
    expect(standing(result)).toEqual({ reviews: 'with errors' });
    const mended = await settled(...result.subgraphs.values(), subgraph('users', users));
    expect(standing(mended)).toEqual({ reviews: 'newest', users: 'newest' });
  });
});

test('a schema that took too long is not tried again, and others are', async () => {
  let tried = 0;
  const slow = async (sources: readonly SubgraphSource[]) => {
    if (!sources.some(({ name }) => name === 'slow')) return compose(sources);
    tried += 1;
    return { errors: [{ code: LIMIT_CODE, message: 'it took too long' }] };
  };
  const first = await settle(new Map([['slow', subgraph('slow', users)]]), slow);
  expect(standing(first)).toEqual({ slow: 'out' });
  const triedAtFirst = tried;
  const next = await settle(new Map([...first.subgraphs, ['products', subgraph('products', products)]]), slow);
  expect(standing(next)).toEqual({ slow: 'out', products: 'newest' });
  expect(tried).toBe(triedAtFirst);
});

test('many schemas that are wrong at once cost no more than so many compositions', async () => {
  let count = 0;
  const counted = (sources: readonly SubgraphSource[]) => {
    count += 1;
    return compose(sources);
  };
  const wrong = Array.from({ length: 60 }, (_, index) => subgraph(`wrong-${index}`, garbage));
  const result = await settle(new Map(wrong.map((each) => [each.service, each])), counted);
  expect(count).toBeLessThanOrEqual(64);
  expect(Object.values(standing(result))).toEqual(wrong.map(() => 'out'));
});
