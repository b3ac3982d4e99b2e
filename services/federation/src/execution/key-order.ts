import {
  type ConstDirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  Kind,
  type ObjectTypeDefinitionNode,
} from 'graphql/index.js';
import { withDefinitions } from './definitions.ts';
import { argumentOf, fieldsOf, graphOf, joinsOf } from './join-directives.ts';

/**
 * Puts last, of the keys of a type in a subgraph, the one that most subgraphs know, and leaves out those
 * that have all fields of another one. For a field that requires others the planner comes back to its
 * subgraph by the last key, and ends its process where the subgraph that it comes from lacks that one.
 *
 * @returns the document itself where nothing is changed.
 */
export function inKeyOrder(document: DocumentNode): DocumentNode {
  return withDefinitions(document, (node) =>
    node.kind === Kind.OBJECT_TYPE_DEFINITION && requiresFields(node) ? withOrderedKeys(node) : node,
  );
}

function requiresFields({ fields = [] }: ObjectTypeDefinitionNode): boolean {
  return fields.some(({ directives = [] }) => directives.some((each) => argumentOf(each, 'requires') !== undefined));
}

function withOrderedKeys(node: ObjectTypeDefinitionNode): ObjectTypeDefinitionNode {
  const { directives = [], fields = [] } = node;
  const joins = directives.filter(({ name }) => name.value === 'join__type');
  const graphs = [...new Set(joins.map(graphOf))];
  const ordered = graphs.flatMap((graph) => {
    const keys = joins.filter((join) => graphOf(join) === graph);
    return keys
      .filter((key) => !keys.some((other) => other !== key && isWithin(other, key) && areOwn(key, fields)))
      .map((key) => ({ key, known: graphs.filter((one) => knows(one, key, fields)).length }))
      .toSorted((one, other) => one.known - other.known)
      .map(({ key }) => key);
  });
  if (ordered.length === joins.length && ordered.every((join, index) => join === joins[index])) return node;
  return { ...node, directives: [...ordered, ...directives.filter((directive) => !joins.includes(directive))] };
}

/** Whether a key that opens a subgraph has some of the fields of another one, and none besides. */
function isWithin(key: ConstDirectiveNode, other: ConstDirectiveNode): boolean {
  const [texts, others] = [key, other].map((one) => (argumentOf(one, 'key') ?? '').split(' '));
  if (texts === undefined || others === undefined || argumentOf(key, 'resolvable') === 'false') return false;
  // Of keys with objects, no part is a field by itself.
  const arePlain = [...texts, ...others].every((text) => /^\w+$/.test(text));
  return arePlain && texts.length < others.length && texts.every((text) => others.includes(text));
}

/** Whether the subgraph of a key has its fields even if they are in no key. */
function areOwn(key: ConstDirectiveNode, fields: readonly FieldDefinitionNode[]): boolean {
  return fieldsOf(argumentOf(key, 'key')).every((name) =>
    joinsOf(fields.find((field) => field.name.value === name)).every(
      (join) => graphOf(join) !== graphOf(key) || argumentOf(join, 'external') !== 'true',
    ),
  );
}

/** Whether a subgraph has all fields of a key; parts of objects count as known. */
function knows(graph: string, key: ConstDirectiveNode, fields: readonly FieldDefinitionNode[]): boolean {
  return fieldsOf(argumentOf(key, 'key')).every((name) => {
    const joins = joinsOf(fields.find((field) => field.name.value === name));
    return joins.length === 0 || joins.some((join) => graphOf(join) === graph);
  });
}
