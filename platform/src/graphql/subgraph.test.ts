import { Registry } from 'prom-client';
import { Type } from 'typebox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commonError } from '../common-errors.ts';
import { ServiceError } from '../errors.ts';
import { codedErrorBody } from '../http/errors.ts';
import type { Identity } from '../http/identity.ts';
import { type App, createServer } from '../http/server.ts';
import { answerToServiceError } from '../http/service-errors.ts';
import { createLogger } from '../process/log.ts';
import { checkedInput } from './input.ts';
import { addSubgraph, type Resolvers, type SubgraphContext } from './subgraph.ts';

const sdl = `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
  type Payment @key(fields: "id") { id: ID! amount: Int! owner: String next: Payment }
  input CreatePaymentInput { amount: Int! email: String idempotencyKey: String }
  type Query { payment(id: ID!): Payment }
  type Mutation { createPayment(input: CreatePaymentInput!): Payment }
`;

const input = Type.Object({
  amount: Type.Integer({ minimum: 1 }),
  email: Type.Optional(Type.String({ format: 'email' })),
});

const payment = (id: string) => ({ id, amount: 5, next: () => payment('next') });

const resolvers: Resolvers = {
  Query: {
    payment: (_: unknown, { id }: { id: string }) => {
      if (id === 'none') throw commonError('NOT_FOUND', { details: { id } });
      if (id === 'fault') throw new TypeError('password=hunter2');
      if (id === 'broken') return { id };
      if (id === 'odd') return { id, amount: 'hunter2' };
      return payment(id);
    },
  },
  Mutation: {
    createPayment: (_: unknown, args: { input: unknown }) => {
      const { amount } = checkedInput(input, args.input);
      if (amount === 13) throw new ServiceError('PAYMENT_FAILED', { status: 402, message: 'It was refused' });
      return { ...payment('made'), amount };
    },
  },
  Payment: {
    owner: (_source: unknown, _args: unknown, { caller }: SubgraphContext) => caller?.subject,
    __resolveReference: ({ id }: { id: string }) => (id === 'none' ? null : payment(id)),
  },
};

const logged: string[] = [];
let app: App;

function newApp(): App {
  const log = createLogger('test', 'silent');
  log.error = (fields: object) =>
    void logged.push(JSON.stringify(fields, (_key, each) => (each instanceof Error ? each.message : each)));
  return createServer({
    log,
    metrics: new Registry(),
    bodyLimit: 50_000,
    closingLimitMs: 100,
    mapError: answerToServiceError,
    renderError: codedErrorBody,
  });
}

/** Callers say who they are by a header here; how that is proven callers.test.ts has. */
async function readCaller({ headers }: { headers: Record<string, unknown> }): Promise<Identity | undefined> {
  if (headers['x-scopes'] === 'bad') throw commonError('UNAUTHENTICATED');
  const scopes = headers['x-scopes'];
  if (typeof scopes !== 'string') return undefined;
  return { subject: 'buyer', tier: '', scopes: new Set(scopes.split(' ')), expiresAtMs: Number.POSITIVE_INFINITY };
}

beforeAll(async () => {
  app = newApp();
  await addSubgraph(app, { service: 'payment', sdl, resolvers, readCaller });
});

afterAll(() => app.close());

interface Asked {
  readonly variables?: object;
  readonly scopes?: string;
  readonly headers?: Record<string, string>;
}

async function ask(query: string, { variables, scopes = 'payments:read payments:write', headers }: Asked = {}) {
  const answer = await app.inject({
    method: 'POST',
    url: '/api/graphql',
    headers: { ...(scopes === '' ? {} : { 'x-scopes': scopes }), ...headers },
    payload: { query, ...(variables === undefined ? {} : { variables }) },
  });
  const { data, errors, error } = answer.json();
  return { status: answer.statusCode, data, errors, error, headers: answer.headers };
}

test('queries and mutations are answered, and resolvers know who calls', async () => {
  expect(await ask('{ payment(id: "a") { id amount owner } }')).toMatchObject({
    status: 200,
    data: { payment: { id: 'a', amount: 5, owner: 'buyer' } },
  });
  const made = await ask('mutation M($input: CreatePaymentInput!) { createPayment(input: $input) { id amount } }', {
    variables: { input: { amount: 7, email: null } },
  });
  expect(made.data).toEqual({ createPayment: { id: 'made', amount: 7 } });
});

test('the SDL is for all, as it is written', async () => {
  const { data } = await ask('{ _service { sdl } }', { scopes: '' });
  expect(data).toEqual({ _service: { sdl } });
  const introspected = await ask('{ __schema { queryType { name } } }', { scopes: '' });
  expect(introspected.data).toEqual({ __schema: { queryType: { name: 'Query' } } });
});

const ENTITIES = 'query ($r: [_Any!]!) { _entities(representations: $r) { ... on Payment { id amount } } }';
const representations = (...ids: readonly string[]) => ({ r: ids.map((id) => ({ __typename: 'Payment', id })) });

test('entities are found by their keys, and need the scope of reading them', async () => {
  const found = await ask(ENTITIES, { variables: representations('a', 'none', 'b') });
  expect(found.data).toEqual({ _entities: [{ id: 'a', amount: 5 }, null, { id: 'b', amount: 5 }] });
  const refused = await ask(ENTITIES, { variables: representations('a'), scopes: 'payments:write' });
  expect(refused).toMatchObject({ data: { _entities: [null] }, errors: [{ extensions: { code: 'FORBIDDEN' } }] });
});

test('a field without its scope is refused, and others are not', async () => {
  const { data, errors } = await ask('mutation { createPayment(input: {amount: 1}) { id } }', {
    scopes: 'payments:read',
  });
  expect(data).toEqual({ createPayment: null });
  expect(errors).toMatchObject([
    { path: ['createPayment'], extensions: { code: 'FORBIDDEN', details: { missing: ['payments:write'] } } },
  ]);
  expect((await ask('{ payment(id: "a") { id } }', { scopes: 'payments:read' })).errors).toBeUndefined();
});

test('who shows nothing reads no field, and who shows what does not hold gets nothing at all', async () => {
  const { errors } = await ask('{ payment(id: "a") { id } }', { scopes: '' });
  expect(errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
  const bad = await ask('{ _service { sdl } }', { scopes: 'bad' });
  expect(bad).toMatchObject({ status: 401, error: { code: 'UNAUTHENTICATED' } });
});

test('an error has the code and details that it has over REST', async () => {
  const none = await ask('{ payment(id: "none") { id } }');
  expect(none.errors).toMatchObject([
    { path: ['payment'], extensions: { code: 'NOT_FOUND', details: { id: 'none' } } },
  ]);
  const failed = await ask('mutation { createPayment(input: {amount: 13}) { id } }');
  expect(failed.errors).toMatchObject([{ message: 'It was refused', extensions: { code: 'PAYMENT_FAILED' } }]);
});

test('faults of an input are said together, each at its field', async () => {
  const { errors } = await ask('mutation { createPayment(input: {amount: 0, email: "x"}) { id } }');
  expect(errors[0].extensions).toEqual({
    code: 'INVALID_REQUEST',
    details: {
      fields: [
        { path: 'input/amount', message: 'must be >= 1' },
        { path: 'input/email', message: 'must match format "email"' },
      ],
    },
  });
});

test.each(['fault', 'broken', 'odd'])('what nobody foresaw is told to nobody but the log: %s', async (id) => {
  logged.length = 0;
  const { errors, data } = await ask(`{ payment(id: "${id}") { id amount } }`);
  expect(data).toEqual({ payment: null });
  expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL' } }]);
  expect(JSON.stringify(errors)).not.toMatch(/hunter2|non-nullable/);
  expect(logged).toHaveLength(1);
  expect(logged[0]).toMatch(/hunter2|non-nullable/);
});

const nested = (depth: number) => `{ payment(id: "a") ${'{ next '.repeat(depth - 2)}{ id }${' }'.repeat(depth - 2)} }`;
const aliases = (count: number) => Array.from({ length: count }, (_, at) => `a${at}: id`).join(' ');
const roots = (count: number) => Array.from({ length: count }, (_, at) => `a${at}: payment(id: "a") { id }`).join(' ');
// Ten fragments, each of which has the next one twice.
const doubling = Array.from(
  { length: 10 },
  (_, at) => `fragment f${at} on Payment { ...f${at + 1} next { ...f${at + 1} } }`,
);
const spreads = `{ payment(id: "a") { ...f0 } } ${doubling.join(' ')} fragment f10 on Payment { a: id }`;

test.each([
  ['{ payment(id: "a") { id }', 'Syntax Error'],
  ['{ nothing }', 'Cannot query field "nothing"'],
  ['{ payment { id } }', 'argument "id" of type "ID!" is required'],
  [nested(21), 'more than 20 levels'],
  [`{ payment(id: "a") { ${aliases(51)} } }`, 'more than 50 aliases'],
  [spreads, 'more than 50 aliases'],
  [`{ ${roots(31)} }`, 'more than 30 fields of its root'],
  [`{ payment(id: "a") { ${'id '.repeat(2000)} } }`, 'more that 2000 tokens'],
  ['{ ...f } fragment f on Query { ...f }', 'Cannot spread fragment "f" within itself'],
  [JSON.stringify({ kind: 'Document', definitions: [] }), 'Syntax Error'],
  ['query A { payment(id: "a") { id } } query B { payment(id: "a") { id } }', 'Must provide operation name'],
])('%j is refused before a resolver runs', async (query, message) => {
  const { status, errors, data } = await ask(query);
  expect(errors[0]).toMatchObject({
    message: expect.stringContaining(message),
    extensions: { code: 'INVALID_REQUEST' },
  });
  expect([status, data]).toEqual([400, undefined]);
});

test.each([nested(20), `{ payment(id: "a") { ${aliases(50)} } }`, `{ a: __typename ${roots(29)} }`])(
  'what is just within the limits is answered',
  async (query) => {
    expect((await ask(query)).errors).toBeUndefined();
  },
);

test('subscriptions are refused: changes go out by channels and webhooks', async () => {
  expect((await ask('subscription { payment }')).errors).toMatchObject([{ extensions: { code: 'INVALID_REQUEST' } }]);
});

test('variables of another type are refused, and their values are in no log', async () => {
  logged.length = 0;
  const { status, errors } = await ask('query ($id: ID!) { payment(id: $id) { id } }', { variables: { id: { a: 1 } } });
  expect([status, errors[0].extensions.code]).toEqual([400, 'INVALID_REQUEST']);
  expect(logged).toEqual([]);
});

test.each([
  [{ payload: { query: 'x'.repeat(16_000) } }, 400],
  [{ payload: { query: '{ __typename }', variables: { a: 'x'.repeat(60_000) } } }, 413],
  [{ payload: [{ query: '{ __typename }' }] }, 400],
  [{ payload: {} }, 400],
  [{ payload: 'query={__typename}', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415],
  [{ payload: '{ __typename }', headers: { 'content-type': 'text/plain' } }, 415],
])('a request that is none of GraphQL is refused as over REST', async (request, status) => {
  const answer = await app.inject({ method: 'POST', url: '/api/graphql', ...request });
  expect([answer.statusCode, typeof answer.json().error.code]).toEqual([status, 'string']);
});

test('nothing is asked by GET, which pages of others could do', async () => {
  expect((await app.inject('/api/graphql?query={__typename}')).statusCode).toBe(405);
});

test('the type of the answer is what was asked for', async () => {
  const headers = { accept: 'application/graphql-response+json, application/json;q=0.9' };
  const { headers: given } = await ask('{ __typename }', { headers });
  expect(given['content-type']).toContain('application/graphql-response+json');
  expect((await ask('{ __typename }')).headers['content-type']).toContain('application/json');
});

test.each<[string, Resolvers, string, string]>([
  ['a field without a resolver', { Query: {} }, 'no resolver for Query.payment', ''],
  [
    'a field without a scope',
    { Query: { ...resolvers['Query'], secret: () => 1 } },
    'lacks Query.secret',
    'extend type Query { secret: Int }',
  ],
  [
    'an entity without a scope',
    { ...resolvers, Card: { __resolveReference: () => null } },
    'lacks Card',
    'type Card @key(fields: "id") { id: ID! }',
  ],
])('%s keeps the service from starting', async (...[, given, message, more]) => {
  await using other = newApp();
  const all = { Mutation: resolvers['Mutation'] ?? {}, ...given };
  const added = addSubgraph(other, { service: 'payment', sdl: sdl + more, resolvers: all, readCaller });
  await expect(added).rejects.toThrow(message);
});
