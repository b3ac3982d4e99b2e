import type { SubgraphSource } from '@rollcall/federation/testing/subgraph.ts';

const LINK = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@external"])';

/** Who buys. */
export const users: SubgraphSource = {
  sdl: `${LINK} type Query { users: [User!]! } type User @key(fields: "id") { id: ID! name: String }`,
  resolvers: {
    Query: {
      users: () => [
        { id: '1', name: 'Anna' },
        { id: '2', name: 'Ben' },
      ],
    },
  },
};

/** What they said. Does not compose without {@link users}: it has no query. */
export const reviews: SubgraphSource = {
  sdl: `${LINK} type User @key(fields: "id") { id: ID! reviews: [String!]! }`,
  resolvers: { User: { reviews: ({ id }) => [`review of ${String(id)}`] } },
};

/** What they buy. */
export const products: SubgraphSource = {
  sdl: `${LINK} type Query { product: String } type Mutation { sell(sku: ID!): String }`,
  resolvers: { Query: { product: () => 'table' }, Mutation: { sell: (_root, { sku }) => `sold ${String(sku)}` } },
};

/** Has another type for what {@link products} have. */
export const clashing: SubgraphSource = { sdl: `${LINK} type Query { product: [Int!] }` };
