import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql/index.js';
import { type Refused, refused, requestError } from './errors.ts';
import { isTooLarge } from './expansion.ts';

/** Parses a document and checks it by the specification of GraphQL, and that it can be planned. */
export function readDocument(query: string, schema: GraphQLSchema): DocumentNode | Refused {
  try {
    const document = parse(query);
    const errors = validate(schema, document, RULES);
    if (errors.length > 0) return { errors: errors.map(requestError) };
    return isTooLarge(document) ? refused('The document is too large once its fragments are put in') : document;
  } catch (error) {
    if (error instanceof GraphQLError) return { errors: [requestError(error)] };
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

const RULES = [...specifiedRules, noPrototypes];
