import {
  type DefinitionNode,
  type DocumentNode,
  type GraphQLField,
  type GraphQLNamedType,
  GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isUnionType,
  Kind,
  parse,
  print,
  specifiedDirectives,
} from 'graphql/index.js';
import { extendSchemaImpl } from 'graphql/utilities/extendSchema.js';

/** Of SDL: parsing it takes a few milliseconds. */
const PIECE_LENGTH = 16_384;
/** Types that are built in one step. */
const TYPES_PER_STEP = 100;

const NOTHING = {
  description: undefined,
  types: [],
  directives: [],
  extensions: Object.create(null),
  extensionASTNodes: [],
  assumeValid: false,
};

/** Pure. What clients see, as SDL in pieces of some definitions each. */
export function apiPieces({ definitions }: DocumentNode): readonly string[] {
  const pieces: string[] = [];
  let piece = '';
  for (const definition of definitions) {
    piece += `${print(definition)}\n`;
    if (piece.length < PIECE_LENGTH) continue;
    pieces.push(piece);
    piece = '';
  }
  return piece === '' ? pieces : [...pieces, piece];
}

/**
 * Builds the schema of such pieces, step by step: a large one takes a second, and the event loop must
 * not wait so long. It is as `buildASTSchema` builds it, but for the documents, which take more memory
 * than all else.
 */
export function* apiSchemaSteps(pieces: readonly string[]): Generator<undefined, GraphQLSchema> {
  const definitions: DefinitionNode[] = [];
  for (const piece of pieces) {
    definitions.push(...parse(piece, { noLocation: true }).definitions);
    yield;
  }
  const config = extendSchemaImpl(NOTHING, { kind: Kind.DOCUMENT, definitions }, { assumeValidSDL: true });
  yield;
  for (const [index, type] of config.types.entries()) {
    settle(type);
    if (index % TYPES_PER_STEP === 0) yield;
  }
  const rootOf = (name: string) => config.types.filter(isObjectType).find((type) => type.name === name);
  const known = new Set(config.directives.map(({ name }) => name));
  return new GraphQLSchema({
    ...config,
    astNode: undefined,
    query: config.query ?? rootOf('Query'),
    mutation: config.mutation ?? rootOf('Mutation'),
    subscription: config.subscription ?? rootOf('Subscription'),
    directives: [...config.directives, ...specifiedDirectives.filter(({ name }) => !known.has(name))],
    assumeValid: true,
  });
}

/** Has a type read its document, which it would else do for the first query, and lets go of that. */
function settle(type: GraphQLNamedType): void {
  type.astNode = undefined;
  if (isObjectType(type) || isInterfaceType(type)) {
    type.getInterfaces();
    for (const field of Object.values(type.getFields())) forget(field);
  } else if (isInputObjectType(type)) {
    for (const field of Object.values(type.getFields())) field.astNode = undefined;
  } else if (isUnionType(type)) type.getTypes();
  else if (isEnumType(type)) for (const value of type.getValues()) value.astNode = undefined;
}

function forget(field: GraphQLField<unknown, unknown>): void {
  field.astNode = undefined;
  for (const argument of field.args) argument.astNode = undefined;
}
