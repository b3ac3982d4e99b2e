import {
  buildASTSchema,
  type DocumentNode,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isRequiredInputField,
  isTypeSubTypeOf,
  Kind,
  parse,
  parseType,
  typeFromAST,
  validate,
} from 'graphql/index.js';
import { publicDocument } from '../execution/public-document.ts';

/** More of one operation are of no use to people. */
const MOST_ERRORS = 5;

/**
 * Pure. What is wrong with each operation in another graph that is right in the one in force.
 *
 * @param before the supergraph in force. @param documents of one operation each.
 * @returns messages for people, by the place of the document; empty where it goes on, or was wrong before.
 */
export function findBreaks(
  before: string,
  after: string,
  documents: readonly string[],
): readonly (readonly string[])[] {
  const [old, next] = [publicSchema(before), publicSchema(after)];
  return documents.map((document) => breaksOf(document, old, next));
}

function publicSchema(supergraph: string): GraphQLSchema {
  const document = publicDocument(parse(supergraph, { noLocation: true }));
  return buildASTSchema(document, { assumeValid: true });
}

function breaksOf(text: string, before: GraphQLSchema, after: GraphQLSchema): readonly string[] {
  const document = parse(text, { noLocation: true });
  const errors = validate(after, document, undefined, { maxErrors: MOST_ERRORS });
  if (errors.length > 0 && validate(before, document, undefined, { maxErrors: 1 }).length > 0) return [];
  const messages = errors.length > 0 ? errors.map(({ message }) => message) : variableBreaks(document, before, after);
  return messages.slice(0, MOST_ERRORS);
}

/** Which values its variables had is not kept: what is no longer taken may have been one of them. */
function variableBreaks(document: DocumentNode, before: GraphQLSchema, after: GraphQLSchema): readonly string[] {
  const breaks = new Set<string>();
  const seen = new Set<string>();
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    for (const { type } of definition.variableDefinitions ?? []) {
      let named = type;
      while (named.kind !== Kind.NAMED_TYPE) named = named.type;
      const [old, next] = [typeFromAST(before, named), typeFromAST(after, named)];
      if (isInputType(old) && isInputType(next)) compare(old, next, { graph: after, breaks, seen });
    }
  }
  return [...breaks];
}

interface Compared {
  /** The other one. */
  readonly graph: GraphQLSchema;
  readonly breaks: Set<string>;
  /** Types that were compared: they may lead back to themselves. */
  readonly seen: Set<string>;
}

function compare(old: GraphQLInputType, next: GraphQLInputType, compared: Compared): void {
  const [before, after] = [getNamedType(old), getNamedType(next)];
  if (compared.seen.has(before.name)) return;
  compared.seen.add(before.name);
  if (isInputObjectType(before) && isInputObjectType(after)) {
    compareFields(before, after, compared);
    return;
  }
  if (!isEnumType(before) || !isEnumType(after)) return;
  for (const { name } of before.getValues()) {
    if ((after.getValue(name) ?? undefined) === undefined)
      compared.breaks.add(`Value "${name}" of enum "${before.name}" is gone.`);
  }
}

function compareFields(before: GraphQLInputObjectType, after: GraphQLInputObjectType, compared: Compared): void {
  const { graph, breaks } = compared;
  const [oldFields, nextFields] = [before.getFields(), after.getFields()];
  for (const [name, field] of Object.entries(oldFields)) {
    const kept = nextFields[name];
    if (kept === undefined) breaks.add(`Field "${name}" of input "${before.name}" is gone.`);
    else if (isTaken(field.type, kept.type, graph)) compare(field.type, kept.type, compared);
    else breaks.add(`Field "${before.name}.${name}" is of type "${String(kept.type)}", not "${String(field.type)}".`);
  }
  for (const [name, field] of Object.entries(nextFields)) {
    if (oldFields[name] === undefined && isRequiredInputField(field))
      breaks.add(`Field "${name}" of input "${before.name}" is new, and required.`);
  }
}

/** Whether all values of a type of the graph in force are values of one in the other. */
function isTaken(old: GraphQLInputType, next: GraphQLInputType, graph: GraphQLSchema): boolean {
  const same = typeFromAST(graph, parseType(String(old)));
  return same !== undefined && isTypeSubTypeOf(graph, same, next);
}
