import {
  type ConstDirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  type InterfaceTypeDefinitionNode,
  Kind,
  parse,
  type SelectionSetNode,
  visit,
} from 'graphql/index.js';

/**
 * Says of interfaces that a subgraph knows as an object (@interfaceObject) which fields are external
 * there, because it requires them. Composition does not, and the planner would fetch them there.
 *
 * @returns the document itself where there are no such interfaces.
 */
export function mendSupergraph(document: DocumentNode): DocumentNode {
  return visit(document, {
    InterfaceTypeDefinition(node): InterfaceTypeDefinitionNode | undefined {
      const types = node.directives?.filter(({ name }) => name.value === 'join__type') ?? [];
      const objects = types.filter((type) => argument(type, 'isInterfaceObject') === 'true');
      if (objects.length === 0) return undefined;
      const byField = requirers(node, objects);
      return { ...node, fields: node.fields?.map((field) => withExternals(field, byField, types)) ?? [] };
    },
  });
}

/** By field, the subgraphs that know the interface as an object and require the field of another one. */
function requirers(
  { fields = [] }: InterfaceTypeDefinitionNode,
  objects: readonly ConstDirectiveNode[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const byField = new Map<string, Set<string>>();
  for (const directive of fields.flatMap(({ directives = [] }) => directives)) {
    const graph = argument(directive, 'graph');
    const object = objects.find((type) => argument(type, 'graph') === graph);
    if (graph === undefined || object === undefined) continue;
    const key = fieldsOf(argument(object, 'key'));
    for (const field of fieldsOf(argument(directive, 'requires'))) {
      if (!key.includes(field)) byField.set(field, (byField.get(field) ?? new Set()).add(graph));
    }
  }
  return byField;
}

/** Without a directive, every subgraph of the type resolves the field. */
function withExternals(
  field: FieldDefinitionNode,
  requirers: ReadonlyMap<string, ReadonlySet<string>>,
  types: readonly ConstDirectiveNode[],
): FieldDefinitionNode {
  const graphs = requirers.get(field.name.value);
  const isJoined = field.directives?.some(({ name }) => name.value === 'join__field') === true;
  if (graphs === undefined || isJoined) return field;
  const joined = types.map((type) => {
    const graph = argument(type, 'graph') ?? '';
    return joinField(graph, graphs.has(graph));
  });
  return { ...field, directives: [...(field.directives ?? []), ...joined] };
}

function joinField(graph: string, isExternal: boolean): ConstDirectiveNode {
  const of = { kind: Kind.ARGUMENT, name: nameOf('graph'), value: { kind: Kind.ENUM, value: graph } } as const;
  const external = {
    kind: Kind.ARGUMENT,
    name: nameOf('external'),
    value: { kind: Kind.BOOLEAN, value: true },
  } as const;
  return { kind: Kind.DIRECTIVE, name: nameOf('join__field'), arguments: isExternal ? [of, external] : [of] };
}

function nameOf(value: string) {
  return { kind: Kind.NAME, value } as const;
}

function argument({ arguments: given }: ConstDirectiveNode, name: string): string | undefined {
  const value = given?.find((argument) => argument.name.value === name)?.value;
  return value !== undefined && 'value' in value ? String(value.value) : undefined;
}

/** The outermost fields of a field set. */
function fieldsOf(fieldSet: string | undefined): readonly string[] {
  if (fieldSet === undefined) return [];
  const [operation] = parse(`{ ${fieldSet} }`).definitions;
  return operation?.kind === Kind.OPERATION_DEFINITION ? fieldNames(operation.selectionSet) : [];
}

function fieldNames({ selections }: SelectionSetNode): readonly string[] {
  return selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return [selection.name.value];
    return selection.kind === Kind.INLINE_FRAGMENT ? fieldNames(selection.selectionSet) : [];
  });
}
