// A sample service with GraphQL: `node sample-users.ts NAME PORT REGISTRY`, port 0 for any free one.
// It has users, to whom other services add fields in the graph: payment their payments. It keeps
// itself registered, and unregisters when it is asked to stop.
import { once } from 'node:events';
import { buildFederationSchema } from '@mercuriusjs/federation';
import { register } from '@rollcall/client/registration.ts';
import { fastify } from 'fastify';
import { type MercuriusContext, mercurius } from 'mercurius';

interface User {
  /** Of a customer of payment, where the user is to have payments. */
  readonly id: string;
  readonly name: string;
}

const SDL = `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])

  type User @key(fields: "id") {
    id: ID!
    name: String!
  }

  extend type Query {
    users: [User!]!
    user(id: ID!): User
  }

  extend type Mutation {
    addUser(id: ID!, name: String!): User!
  }

  extend type Subscription {
    userAdded: User!
  }
`;
/** The topic of users that are added. */
const ADDED = 'userAdded';
/** In memory. */
const MOST_USERS = 1000;
const users = new Map<string, User>([
  ['u-1', { id: 'u-1', name: 'Ada' }],
  ['u-2', { id: 'u-2', name: 'Grace' }],
]);

const find = ({ id }: Pick<User, 'id'>): User | null => users.get(id) ?? null;
const resolvers = {
  Query: {
    users: () => [...users.values()],
    user: (_root: unknown, asked: Pick<User, 'id'>) => find(asked),
  },
  Mutation: {
    async addUser(_root: unknown, { id, name }: User, { pubsub }: MercuriusContext): Promise<User> {
      if (users.size >= MOST_USERS && !users.has(id)) throw new Error('There are as many users as there may be');
      users.set(id, { id, name });
      await pubsub.publish({ topic: ADDED, payload: { userAdded: { id, name } } });
      return { id, name };
    },
  },
  Subscription: {
    userAdded: { subscribe: (_root: unknown, _asked: object, { pubsub }: MercuriusContext) => pubsub.subscribe(ADDED) },
  },
  User: { __resolveReference: find },
};

const [name = '', port = '', registry = ''] = process.argv.slice(2);
const stopRequested = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
const app = fastify();
app.get('/health', () => ({ status: 'healthy' }));
await app.register(mercurius, {
  schema: buildFederationSchema(SDL),
  resolvers,
  path: '/api/graphql',
  subscription: true,
});
const url = await app.listen({ host: '127.0.0.1', port: Number(port) });
console.log(`${name} answers at ${url}`);
const registration = register({ servers: registry, name, url, capabilities: ['rest', 'graphql'] });
registration.on('registered', ({ service }) => console.log('registered', service.service_id));
registration.on('error', ({ error }) => console.error(error));
await stopRequested;
// First nobody finds it any more, then it stops answering.
await registration[Symbol.asyncDispose]();
await app.close();
