import { allowedAddresses } from '@rollcall/platform/outbound/address-rules.ts';
import { type Environment, parseConfig } from '@rollcall/platform/process/config.ts';
import { clientConfig, clientSettings } from '@rollcall/platform/service/gateway-client.ts';
import { registeredConfig, registeredSettings } from '@rollcall/platform/service/settings.ts';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Contracts } from './execution/graph-source.ts';
import { readHeaderRules } from './subgraphs/headers/rules.ts';

const schema = Type.Object({
  ...registeredSettings(3002),
  ROLLCALL_TOKEN_AUDIENCE: Type.String({
    minLength: 1,
    default: 'rollcall',
    description: "Of the gateway's access tokens, which are credentials here, too",
  }),
  ...clientSettings("Federation's client at the gateway; absent: no service of the graph is told who calls"),
  ROLLCALL_SERVICE_ADDRESSES: Type.Enum(allowedAddresses, {
    default: 'cluster',
    description: 'Where subgraphs may be',
  }),
  ROLLCALL_SCHEMA_POLL_SECONDS: Type.Number({
    minimum: 1,
    maximum: 3600,
    default: 60,
    description: 'Between two looks at the schema of a service, more or less',
  }),
  ROLLCALL_SCHEMA_GRACE_SECONDS: Type.Number({
    minimum: 0,
    maximum: 86_400,
    default: 300,
    description: 'So long the fields of a service that is no longer registered stay in the graph',
  }),
  ROLLCALL_SUBGRAPH_TIMEOUT_SECONDS: Type.Number({
    minimum: 0.1,
    maximum: 60,
    default: 10,
    description: 'From a call of a subgraph to the last byte of its answer',
  }),
  ROLLCALL_SUBGRAPH_ANSWER_BYTES: Type.Integer({
    minimum: 1024,
    maximum: 256 * 1024 * 1024,
    default: 16 * 1024 * 1024,
    description: 'Largest answer of a subgraph',
  }),
  ROLLCALL_SUBGRAPH_CALLS: Type.Integer({
    minimum: 1,
    maximum: 10_000,
    default: 100,
    description: 'Calls of one subgraph at a time, by each replica; ten times as many may wait',
  }),
  ROLLCALL_SUBGRAPH_ERRORS: Type.Enum(['masked', 'shown'], {
    default: 'masked',
    description: 'Whether callers read the messages of errors of subgraphs',
  }),
  ROLLCALL_QUERY_TOKENS: Type.Integer({
    minimum: 100,
    maximum: 100_000,
    default: 2000,
    description: 'Most tokens of a document',
  }),
  ROLLCALL_QUERY_DEPTH: Type.Integer({
    minimum: 1,
    maximum: 100,
    default: 20,
    description: 'Most fields of an operation one in another',
  }),
  ROLLCALL_QUERY_ALIASES: Type.Integer({
    minimum: 0,
    maximum: 10_000,
    default: 50,
    description: 'Most aliases of an operation',
  }),
  ROLLCALL_QUERY_ROOT_FIELDS: Type.Integer({
    minimum: 1,
    maximum: 10_000,
    default: 30,
    description: 'Most fields of the root of an operation',
  }),
  ROLLCALL_QUERY_DIRECTIVES: Type.Integer({
    minimum: 0,
    maximum: 10_000,
    default: 50,
    description: 'Most directives of an operation',
  }),
  ROLLCALL_QUERY_COST: Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    default: 100_000,
    description: 'Highest cost of an operation, as it is estimated by @cost and @listSize',
  }),
  ROLLCALL_QUERY_LIST_SIZE: Type.Integer({
    minimum: 0,
    maximum: 10_000,
    default: 10,
    description: 'Items that a list is taken to have where no @listSize says it',
  }),
  ROLLCALL_PERSISTED_QUERIES: Type.Enum(['on', 'off'], {
    default: 'on',
    description: 'Whether documents are kept, for clients to name by their hash',
  }),
  ROLLCALL_TRUSTED_DOCUMENTS: Type.Enum(['off', 'log', 'enforce'], {
    default: 'off',
    description: 'Whether only documents are executed that were published, or others are logged',
  }),
  ROLLCALL_BATCH_SIZE: Type.Integer({
    minimum: 1,
    maximum: 10,
    default: 1,
    description: 'Most operations of a request',
  }),
  ROLLCALL_INTROSPECTION: Type.Enum(['on', 'off'], {
    default: 'on',
    description: 'Whether callers may ask for the schema',
  }),
  ROLLCALL_GRAPH_FILE: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'Of this replica alone: with it a replica answers that starts while the database is away',
    }),
  ),
  ROLLCALL_CONTRACTS: Type.String({
    default: '{}',
    description:
      'JSON: parts of the graph with endpoints of their own, such as ' +
      '`{"public": {"include": ["public"], "exclude": ["internal"]}}`, by the names in @tag',
  }),
  ROLLCALL_HEADER_RULES: Type.String({
    default: '{}',
    description:
      'JSON: which header fields services get of clients, and clients of services, such as ' +
      '`{"all": {"request": [{"pass": "x-tenant"}]}}`',
  }),
  ROLLCALL_USAGE_DAYS: Type.Integer({
    minimum: 1,
    maximum: 365,
    default: 7,
    description: 'So long it is kept which operations clients executed',
  }),
});

/** Settings of the federation process. */
export type FederationConfig = ReturnType<typeof federationConfig>;

/** @throws Error naming every faulty variable. */
export function federationConfig(environment: Environment) {
  const parsed = parseConfig(schema, environment);
  return {
    ...registeredConfig(parsed),
    client: clientConfig(parsed),
    tokenAudience: parsed.ROLLCALL_TOKEN_AUDIENCE,
    serviceAddresses: parsed.ROLLCALL_SERVICE_ADDRESSES,
    pollMs: parsed.ROLLCALL_SCHEMA_POLL_SECONDS * 1000,
    graceMs: parsed.ROLLCALL_SCHEMA_GRACE_SECONDS * 1000,
    subgraphTimeoutMs: parsed.ROLLCALL_SUBGRAPH_TIMEOUT_SECONDS * 1000,
    subgraphAnswerBytes: parsed.ROLLCALL_SUBGRAPH_ANSWER_BYTES,
    /** Undefined: there is none. */
    graphFile: parsed.ROLLCALL_GRAPH_FILE,
    contracts: contractsOf(parsed.ROLLCALL_CONTRACTS),
    headerRules: readHeaderRules(jsonOf(parsed.ROLLCALL_HEADER_RULES)),
    usageDays: parsed.ROLLCALL_USAGE_DAYS,
    mostSubgraphCalls: parsed.ROLLCALL_SUBGRAPH_CALLS,
    areErrorsMasked: parsed.ROLLCALL_SUBGRAPH_ERRORS === 'masked',
    keepsQueries: parsed.ROLLCALL_PERSISTED_QUERIES === 'on',
    trust: parsed.ROLLCALL_TRUSTED_DOCUMENTS,
    batchSize: parsed.ROLLCALL_BATCH_SIZE,
    limits: {
      tokens: parsed.ROLLCALL_QUERY_TOKENS,
      depth: parsed.ROLLCALL_QUERY_DEPTH,
      aliases: parsed.ROLLCALL_QUERY_ALIASES,
      rootFields: parsed.ROLLCALL_QUERY_ROOT_FIELDS,
      directives: parsed.ROLLCALL_QUERY_DIRECTIVES,
      cost: parsed.ROLLCALL_QUERY_COST,
      listSize: parsed.ROLLCALL_QUERY_LIST_SIZE,
      allowsIntrospection: parsed.ROLLCALL_INTROSPECTION === 'on',
    },
  };
}

const TagNames = Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 100 }));
const ContractsSetting = Type.Record(
  Type.String(),
  Type.Object({ include: TagNames, exclude: TagNames }, { additionalProperties: false }),
);
/** Part of a path. */
const CONTRACT_NAME = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/;
const MOST_CONTRACTS = 20;

/** @throws Error that says what is wrong. */
function contractsOf(text: string): Contracts {
  const given = jsonOf(text);
  const isGiven = Value.Check(ContractsSetting, given);
  if (
    !isGiven ||
    Object.keys(given).length > MOST_CONTRACTS ||
    !Object.keys(given).every((name) => CONTRACT_NAME.test(name))
  )
    throw new Error(
      'ROLLCALL_CONTRACTS must be JSON such as {"public": {"include": ["tag"], "exclude": ["tag"]}}, with at most ' +
        `${MOST_CONTRACTS} names of small letters, digits and hyphens`,
    );
  return Object.fromEntries(
    Object.entries(given).map(([name, { include = [], exclude = [] }]) => [name, { include, exclude }]),
  );
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
