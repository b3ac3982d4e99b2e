import {
  type ConstDirectiveNode,
  type ConstValueNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  type InterfaceTypeDefinitionNode,
  Kind,
  type NameNode,
  parse,
  type SelectionSetNode,
  type TypeNode,
  valueFromASTUntyped,
} from 'graphql/index.js';
import type { JsonObject } from './types.ts';

/** The subgraphs of an interface. */
interface InterfaceSubgraphs {
  /** `@join__type` of all of them. */
  readonly all: readonly ConstDirectiveNode[];
  /** Of those that know the interface as an object (@interfaceObject), without its types. */
  readonly asObject: readonly ConstDirectiveNode[];
}

export function subgraphsOf({ directives = [] }: InterfaceTypeDefinitionNode): InterfaceSubgraphs {
  const all = directives.filter(({ name }) => name.value === 'join__type');
  return { all, asObject: all.filter((type) => argumentOf(type, 'isInterfaceObject') === 'true') };
}

/** The value of an argument that is an enum value, a text or a Boolean, as text. */
export function argumentOf({ arguments: given }: ConstDirectiveNode, name: string): string | undefined {
  const value = given?.find((argument) => argument.name.value === name)?.value;
  if (value?.kind === Kind.BOOLEAN) return String(value.value);
  return value?.kind === Kind.ENUM || value?.kind === Kind.STRING ? value.value : undefined;
}

/** The arguments of the first directive of a name; undefined: there is no such directive. */
export function argumentsOf(directives: readonly DirectiveNode[] | undefined, name: string): JsonObject | undefined {
  const directive = directives?.find((each) => each.name.value === name);
  if (directive === undefined) return undefined;
  return Object.fromEntries(
    directive.arguments?.map((argument) => [argument.name.value, valueFromASTUntyped(argument.value)]) ?? [],
  );
}

/** The names that subgraphs have in a supergraph, by their own. */
export function graphNames({ definitions }: DocumentNode): ReadonlyMap<string, string> {
  const graphs = definitions.flatMap((definition) =>
    definition.kind === Kind.ENUM_TYPE_DEFINITION && definition.name.value === 'join__Graph'
      ? (definition.values ?? [])
      : [],
  );
  return new Map(
    graphs.map(({ name, directives = [] }) => {
      const join = directives.find((directive) => directive.name.value === 'join__graph');
      return [(join && argumentOf(join, 'name')) ?? name.value, name.value];
    }),
  );
}

/** `@join__field` of a field. Without any, each subgraph of the type has the field. */
export function joinsOf(field: FieldDefinitionNode | undefined): readonly ConstDirectiveNode[] {
  return field?.directives?.filter(({ name }) => name.value === 'join__field') ?? [];
}

/** The subgraph that a directive is about, by its name in the supergraph. */
export function graphOf(join: ConstDirectiveNode): string {
  return argumentOf(join, 'graph') ?? '';
}

/** `@join__field` of a subgraph. */
export function joinField(graph: string): ConstDirectiveNode {
  const directive = { kind: Kind.DIRECTIVE, name: { kind: Kind.NAME, value: 'join__field' } } as const;
  return withArgument(directive, 'graph', { kind: Kind.ENUM, value: graph });
}

/** The directive with an argument more, unless it has one of that name. */
export function withArgument(directive: ConstDirectiveNode, name: string, value: ConstValueNode): ConstDirectiveNode {
  const { arguments: given = [] } = directive;
  if (given.some((argument) => argument.name.value === name)) return directive;
  const added = { kind: Kind.ARGUMENT, name: { kind: Kind.NAME, value: name }, value } as const;
  return { ...directive, arguments: [...given, added] };
}

/** The type of a value, or of the items of a list. */
export function typeNameOf(type: TypeNode): string {
  return type.kind === Kind.NAMED_TYPE ? type.name.value : typeNameOf(type.type);
}

export function nameNode(value: string): NameNode {
  return { kind: Kind.NAME, value };
}

/** The outermost fields of a field set. */
export function fieldsOf(fieldSet: string | undefined): readonly string[] {
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
