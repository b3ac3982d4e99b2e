/** An object of a subgraph, with its `__typename`. */
export type Entity = Readonly<Record<string, unknown>>;

/** What a subgraph has. */
export interface SubgraphData {
  /** Of Federation 1. */
  readonly sdl: string;
  /** Fields of `Query`. */
  readonly root: Entity;
  /** By their ids. */
  readonly entities: ReadonlyMap<string, Entity>;
}

const USERS = 3;
const PRODUCTS = 100;
const LARGE_TYPES = 500;

/** @throws Error where there is none of the name. */
export function subgraphNamed(name: string): SubgraphData {
  const [, number] = /^large-(\d+)$/.exec(name) ?? [];
  const subgraph = number === undefined ? subgraphs.get(name) : large(Number(number));
  if (subgraph === undefined) throw new Error(`There is no subgraph ${name}`);
  return subgraph;
}

const subgraphs: ReadonlyMap<string, SubgraphData> = new Map([
  [
    'users',
    owner({
      sdl: `
        extend type Query { users: [User!]! }
        type User @key(fields: "id") { id: ID! name: String! city: String! }`,
      field: 'users',
      entities: entitiesOf('User', USERS, (index) => ({ name: `Name ${index}`, city: `City ${index}` })),
    }),
  ],
  [
    'reviews',
    {
      sdl: `
        extend type User @key(fields: "id") { id: ID! @external reviews: [Review!]! }
        type Review { id: ID! stars: Int! body: String! }`,
      root: {},
      entities: entitiesOf('User', USERS, (index) => ({ reviews: [reviewOf(index * 2), reviewOf(index * 2 + 1)] })),
    },
  ],
  [
    'products',
    owner({
      sdl: `
        extend type Query { products: [Product!]! }
        type Product @key(fields: "id") { id: ID! name: String! }`,
      field: 'products',
      entities: entitiesOf('Product', PRODUCTS, (index) => ({ name: `Product ${index}` })),
    }),
  ],
  [
    'ticks',
    {
      sdl: `
        extend type Query { ticks: Int! }
        extend type Subscription { tick(topic: ID!): Tick! }
        type Tick { at: Float! }`,
      root: { ticks: 0 },
      entities: new Map(),
    },
  ],
  ['prices', extensionOf('price: Int!', (index) => ({ price: index * 100 }))],
  ['stock', extensionOf('inStock: Boolean!', (index) => ({ inStock: index % 2 === 0 }))],
  ['shipping', extensionOf('days: Int!', (index) => ({ days: index % 7 }))],
  ['ratings', extensionOf('stars: Float!', (index) => ({ stars: index / 20 }))],
]);

/** Many types, of which every tenth is an entity. It has schema, and no data. */
function large(number: number): SubgraphData {
  const types = Array.from({ length: LARGE_TYPES }, (_, index) => {
    const key = index % 10 === 0 ? ' @key(fields: "id")' : '';
    const next = `Type${number}x${(index + 1) % LARGE_TYPES}`;
    return `type Type${number}x${index}${key} { id: ID! name: String! count: Int next: ${next} }`;
  });
  return {
    sdl: `extend type Query { large${number}: Type${number}x0 } ${types.join('\n')}`,
    root: {},
    entities: new Map(),
  };
}

/** The subgraph that lists them all. */
function owner({ sdl, field, entities }: Pick<SubgraphData, 'sdl' | 'entities'> & { field: string }): SubgraphData {
  return { sdl, root: { [field]: [...entities.values()] }, entities };
}

/** One that adds a field to products. */
function extensionOf(field: string, valuesOf: (index: number) => Entity): SubgraphData {
  return {
    sdl: `extend type Product @key(fields: "id") { id: ID! @external ${field} }`,
    root: {},
    entities: entitiesOf('Product', PRODUCTS, valuesOf),
  };
}

function entitiesOf(type: string, count: number, valuesOf: (index: number) => Entity): ReadonlyMap<string, Entity> {
  const ids = Array.from({ length: count }, (_, index) => index);
  return new Map(ids.map((index) => [String(index), { __typename: type, id: String(index), ...valuesOf(index) }]));
}

function reviewOf(index: number): Entity {
  return { __typename: 'Review', id: `r${index}`, stars: 1 + (index % 5), body: `What somebody thinks of it ${index}` };
}
