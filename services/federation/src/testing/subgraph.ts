import {
  buildASTSchema,
  type DefinitionNode,
  type DocumentNode,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  graphql,
  isAbstractType,
  isObjectType,
  Kind,
  parse,
} from 'graphql/index.js';
import { isObject, type JsonObject, type SubgraphAnswer, type SubgraphCall } from '../execution/types.ts';

/** Of a field; `__resolveReference` gives an entity by a representation of it. */
type Resolve = (source: JsonObject, args: JsonObject) => unknown;

/** By type and field. Fields without one are read from their object, types from `__typename`. */
export type Resolvers = Readonly<Record<string, Readonly<Record<string, Resolve>>>>;

export interface SubgraphSource {
  /** Of Federation 1 or 2, by hand. */
  readonly sdl: string;
  readonly resolvers?: Resolvers;
}

/** A subgraph in memory, run by graphql-js. It checks what it is asked as a real one does. */
export class TestSubgraph {
  readonly #schema: GraphQLSchema;

  constructor({ sdl, resolvers = {} }: SubgraphSource) {
    this.#schema = executableSchema(parse(sdl), resolvers);
  }

  async answer({ query, variables, operationName }: SubgraphCall): Promise<SubgraphAnswer> {
    const asked = { source: query, variableValues: variables, operationName: operationName ?? null };
    const result = await graphql({ schema: this.#schema, ...asked });
    // As it comes over the network.
    return JSON.parse(JSON.stringify(result));
  }
}

function executableSchema(document: DocumentNode, resolvers: Resolvers): GraphQLSchema {
  const definitions = withBases(document.definitions.filter(({ kind }) => kind !== Kind.SCHEMA_EXTENSION));
  const entities = new Set(definitions.flatMap((definition) => (isEntity(definition) ? [definition.name.value] : [])));
  const federation = parse(
    `scalar _Any
    ${
      entities.size === 0
        ? ''
        : `union _Entity = ${[...entities].join(' | ')}
    extend type Query { _entities(representations: [_Any!]!): [_Entity]! }`
    }`,
  );
  const schema = buildASTSchema(
    { kind: Kind.DOCUMENT, definitions: [...definitions, ...federation.definitions] },
    { assumeValidSDL: true },
  );
  const references: Resolvers = entities.size === 0 ? {} : { Query: { _entities: entitiesBy(resolvers) } };
  for (const byType of [resolvers, references]) {
    for (const [typeName, fields] of Object.entries(byType)) attach(schema, typeName, fields);
  }
  for (const type of Object.values(schema.getTypeMap())) {
    if (isAbstractType(type)) type.resolveType = (value: unknown) => typenameOf(value);
  }
  return schema;
}

/** Extensions of types that other subgraphs define are definitions here. */
function withBases(definitions: readonly DefinitionNode[]): readonly DefinitionNode[] {
  const known = new Set(
    definitions.flatMap((node) => (node.kind === Kind.OBJECT_TYPE_DEFINITION ? [node.name.value] : [])),
  );
  const based = definitions.map((node): DefinitionNode => {
    if (node.kind !== Kind.OBJECT_TYPE_EXTENSION || known.has(node.name.value)) return node;
    known.add(node.name.value);
    return { ...node, kind: Kind.OBJECT_TYPE_DEFINITION };
  });
  if (known.has('Query')) return based;
  return [...based, ...parse('type Query { _unused: Boolean }').definitions];
}

function isEntity(
  definition: DefinitionNode,
): definition is Extract<DefinitionNode, { readonly kind: Kind.OBJECT_TYPE_DEFINITION }> {
  return (
    definition.kind === Kind.OBJECT_TYPE_DEFINITION &&
    definition.directives?.some(({ name }) => name.value === 'key' || name.value === 'federation__key') === true
  );
}

function entitiesBy(resolvers: Resolvers): Resolve {
  return (_, { representations }) => {
    if (!Array.isArray(representations)) throw new Error('There are no representations');
    return Promise.all(
      representations.map(async (representation: unknown) => {
        if (!isObject(representation)) throw new Error('A representation is no object');
        const typename = String(representation['__typename']);
        const resolve = resolvers[typename]?.['__resolveReference'] ?? ((known: JsonObject) => known);
        const entity = await resolve(representation, {});
        return isObject(entity) ? { __typename: typename, ...entity } : entity;
      }),
    );
  };
}

function attach(schema: GraphQLSchema, typeName: string, fields: Readonly<Record<string, Resolve>>): void {
  const type = schema.getType(typeName);
  if (!isObjectType(type)) return;
  for (const [name, resolve] of Object.entries(fields)) {
    const field = type.getFields()[name];
    const resolver: GraphQLFieldResolver<unknown, unknown> = (source, args) =>
      resolve(isObject(source) ? source : {}, args);
    if (field !== undefined) field.resolve = resolver;
    else if (name !== '__resolveReference') throw new Error(`The subgraph has no ${typeName}.${name}`);
  }
}

function typenameOf(value: unknown): string {
  return isObject(value) ? String(value['__typename']) : '';
}
