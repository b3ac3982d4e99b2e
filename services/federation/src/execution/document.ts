import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql/index.js';
import type { ErrorCode } from '../errors.ts';
import { type Refused, refused, requestError } from './errors.ts';
import { documentExcess, type OperationLimits, tokenExcess } from './limits.ts';

/**
 * Parses a document and checks that it is within the limits, and then by the specification of GraphQL:
 * to check a large one would take long.
 */
export function readDocument(query: string, schema: GraphQLSchema, limits: OperationLimits): DocumentNode | Refused {
  try {
    const document = parse(query, { maxTokens: limits.tokens });
    const excess = documentExcess(document, limits);
    if (excess !== undefined) return excess;
    const errors = validate(schema, document, limits.allowsIntrospection ? RULES : RULES_WITHOUT_INTROSPECTION);
    return errors.length > 0 ? { errors: errors.map(requestError) } : document;
  } catch (error) {
    if (error instanceof GraphQLError) return tokenExcess(query, limits.tokens) ?? { errors: [requestError(error)] };
    // The stack is used up.
    if (error instanceof RangeError) return refused('The document is nested too deep');
    throw error;
  }
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

const RULES = [...specifiedRules, noPrototypes];
const RULES_WITHOUT_INTROSPECTION = [...RULES, noIntrospection];
