import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql/index.js';
import type { ErrorCode } from '../errors.ts';
import { type Refused, refused, requestError } from './errors.ts';
import { introspectionExcess } from './introspection-limits.ts';
import { documentExcess, type OperationLimits, tokenExcess } from './limits.ts';
import { repetitionExcess } from './repetitions.ts';
import type { GraphError } from './types.ts';

/**
 * Parses a document and checks that it is within the limits, and then by the specification of GraphQL:
 * to check a large one would take long.
 */
export function readDocument(query: string, schema: GraphQLSchema, limits: OperationLimits): DocumentNode | Refused {
  try {
    const document = parse(query, { maxTokens: limits.tokens });
    const excess = documentExcess(document, limits);
    if (excess !== undefined) return excess;
    return invalidity(document, schema, limits) ?? document;
  } catch (error) {
    if (error instanceof GraphQLError) return tokenExcess(query, limits.tokens) ?? { errors: [requestError(error)] };
    // The stack is used up.
    if (error instanceof RangeError) return refused('The document is nested too deep');
    throw error;
  }
}

function invalidity(document: DocumentNode, schema: GraphQLSchema, limits: OperationLimits): Refused | undefined {
  const { allowsIntrospection } = limits;
  const errors = validate(schema, document, allowsIntrospection ? RULES : RULES_WITHOUT_INTROSPECTION);
  if (errors.length > 0) return { errors: errors.map(allowsIntrospection ? requestError : withoutSuggestion) };
  const excess = repetitionExcess(document) ?? introspectionExcess(document);
  if (excess !== undefined) return excess;
  const conflicts = validate(schema, document, [OverlappingFieldsCanBeMergedRule]);
  return conflicts.length > 0 ? { errors: conflicts.map(requestError) } : undefined;
}

/** Suggestions tell the schema, name by name. */
function withoutSuggestion(error: GraphQLError): GraphError {
  const told = requestError(error);
  return { ...told, message: told.message.replace(/ Did you mean .*$/s, '') };
}

/** As a key of an object of JavaScript it is none. */
const noPrototypes: ValidationRule = (context) => ({
  Field(node) {
    if (node.alias?.value === '__proto__') {
      context.reportError(new GraphQLError('A field must not be renamed to __proto__', { nodes: [node] }));
    }
  },
});

const noIntrospection: ValidationRule = (context) => ({
  Field(node) {
    const name = node.name.value;
    if (name !== '__schema' && name !== '__type') return;
    const code: ErrorCode = 'INTROSPECTION_DISABLED';
    context.reportError(
      new GraphQLError('The schema cannot be asked for here', { nodes: [node], extensions: { code } }),
    );
  },
});

/** But for that which compares all fields of one name with each other. */
const RULES = [...specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule), noPrototypes];
const RULES_WITHOUT_INTROSPECTION = [...RULES, noIntrospection];
