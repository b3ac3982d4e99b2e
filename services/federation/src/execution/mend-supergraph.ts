import {
  type ConstDirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  type InterfaceTypeDefinitionNode,
  Kind,
} from 'graphql/index.js';
import { withDefinitions } from './definitions.ts';
import { argumentOf, fieldsOf, joinField, subgraphsOf, withArgument } from './join-directives.ts';

/**
 * Says of interfaces that a subgraph knows as an object (@interfaceObject) which fields are external
 * there, because it requires them. Composition does not, and the planner would fetch them there.
 *
 * @returns the document itself where nothing of that kind is required.
 */
export function mendSupergraph(document: DocumentNode): DocumentNode {
  return withDefinitions(document, (node) => {
    if (node.kind !== Kind.INTERFACE_TYPE_DEFINITION) return node;
    const { all, asObject } = subgraphsOf(node);
    const byField = requirers(node, asObject);
    if (byField.size === 0) return node;
    return { ...node, fields: node.fields?.map((field) => withExternals(field, byField, all)) ?? [] };
  });
}

/** By field, the subgraphs that know the interface as an object and require the field of another one. */
function requirers(
  { fields = [] }: InterfaceTypeDefinitionNode,
  objects: readonly ConstDirectiveNode[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const byField = new Map<string, Set<string>>();
  for (const directive of fields.flatMap(({ directives = [] }) => directives)) {
    const graph = argumentOf(directive, 'graph');
    const object = objects.find((type) => argumentOf(type, 'graph') === graph);
    if (graph === undefined || object === undefined) continue;
    const key = fieldsOf(argumentOf(object, 'key'));
    for (const field of fieldsOf(argumentOf(directive, 'requires'))) {
      if (!key.includes(field)) byField.set(field, (byField.get(field) ?? new Set()).add(graph));
    }
  }
  return byField;
}

function withExternals(
  field: FieldDefinitionNode,
  requirers: ReadonlyMap<string, ReadonlySet<string>>,
  types: readonly ConstDirectiveNode[],
): FieldDefinitionNode {
  const graphs = requirers.get(field.name.value);
  if (graphs === undefined) return field;
  const { directives = [] } = field;
  const joins = directives.filter(({ name }) => name.value === 'join__field');
  const others = directives.filter((directive) => !joins.includes(directive));
  // Without a directive, every subgraph of the type resolves the field.
  const resolvers = joins.length > 0 ? joins : types.map((type) => joinField(argumentOf(type, 'graph') ?? ''));
  const joined = resolvers.map((join) => (graphs.has(argumentOf(join, 'graph') ?? '') ? asExternal(join) : join));
  return { ...field, directives: [...others, ...joined] };
}

function asExternal(join: ConstDirectiveNode): ConstDirectiveNode {
  return withArgument(join, 'external', { kind: Kind.BOOLEAN, value: true });
}
