import {
  type ConstDirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  type InterfaceTypeDefinitionNode,
  Kind,
  type ObjectTypeDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  type TypeNode,
  visit,
} from 'graphql/index.js';
import { argumentOf, graphNames, joinField, withArgument } from '../execution/join-directives.ts';

/** A subgraph that has been parsed. */
interface Source {
  readonly name: string;
  readonly typeDefs: DocumentNode;
}

/** The type of a field by subgraph, where they are of several names. */
type Mixed = ReadonlyMap<string, ReadonlyMap<string, TypeNode>>;

/**
 * Pure. Gives each field the widest of the types that subgraphs have for it: an object here may be a
 * union or an interface there. Composition takes one of them, and does not say which subgraph has which.
 *
 * @param supergraph SDL of what the sources compose to. @returns the same text where no field is such.
 */
export function mendFieldTypes(supergraph: string, sources: readonly Source[]): string {
  const mixed = mixedTypes(sources);
  if (mixed.size === 0) return supergraph;
  const document = parse(supergraph, { noLocation: true });
  const widens = supertypes(document);
  const graphs = graphNames(document);
  const mend = (node: ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode) => ({
    ...node,
    fields:
      node.fields?.map((field) => {
        const types = mixed.get(`${node.name.value}.${field.name.value}`);
        return types === undefined ? field : mended(field, { types, graphs, widens });
      }) ?? [],
  });
  return print(visit(document, { ObjectTypeDefinition: mend, InterfaceTypeDefinition: mend }));
}

function mixedTypes(sources: readonly Source[]): Mixed {
  const byField = new Map<string, Map<string, TypeNode>>();
  for (const { name, typeDefs } of sources) {
    const roots = rootNames(typeDefs);
    for (const definition of typeDefs.definitions) {
      if (!('fields' in definition)) continue;
      for (const field of definition.fields ?? []) {
        if (field.kind !== Kind.FIELD_DEFINITION) continue;
        const typeName = definition.name.value;
        const key = `${roots.get(typeName) ?? typeName}.${field.name.value}`;
        byField.set(key, (byField.get(key) ?? new Map()).set(name, field.type));
      }
    }
  }
  return new Map([...byField].filter(([, types]) => new Set([...types.values()].map(namedType)).size > 1));
}

/** What root types of other names are called in a supergraph. */
function rootNames({ definitions }: DocumentNode): ReadonlyMap<string, string> {
  const standard = {
    [OperationTypeNode.QUERY]: 'Query',
    [OperationTypeNode.MUTATION]: 'Mutation',
    [OperationTypeNode.SUBSCRIPTION]: 'Subscription',
  };
  return new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.SCHEMA_DEFINITION || definition.kind === Kind.SCHEMA_EXTENSION
        ? (definition.operationTypes ?? []).map(
            ({ operation, type }) => [type.name.value, standard[operation]] as const,
          )
        : [],
    ),
  );
}

/** By type, the unions and interfaces that it is in. */
function supertypes({ definitions }: DocumentNode): ReadonlyMap<string, ReadonlySet<string>> {
  const byType = new Map<string, Set<string>>();
  const add = (type: string, wider: string) => byType.set(type, (byType.get(type) ?? new Set()).add(wider));
  for (const definition of definitions) {
    if (definition.kind === Kind.UNION_TYPE_DEFINITION) {
      for (const { name } of definition.types ?? []) add(name.value, definition.name.value);
    } else if (definition.kind === Kind.OBJECT_TYPE_DEFINITION || definition.kind === Kind.INTERFACE_TYPE_DEFINITION) {
      for (const { name } of definition.interfaces ?? []) add(definition.name.value, name.value);
    }
  }
  return byType;
}

interface Mending {
  readonly types: ReadonlyMap<string, TypeNode>;
  /** Names of subgraphs in the supergraph, by their own. */
  readonly graphs: ReadonlyMap<string, string>;
  readonly widens: ReadonlyMap<string, ReadonlySet<string>>;
}

function mended(field: FieldDefinitionNode, { types, graphs, widens }: Mending): FieldDefinitionNode {
  const names = [...new Set([...types.values()].map(namedType))];
  const widest = names.find((wide) => names.every((name) => name === wide || widens.get(name)?.has(wide) === true));
  if (widest === undefined) return field;
  const { directives = [] } = field;
  const joins = directives.filter(({ name }) => name.value === 'join__field');
  const byGraph = new Map([...types].map(([name, type]) => [graphs.get(name) ?? '', print(type)]));
  // Without a directive, every subgraph of the type resolves the field.
  const all = joins.length > 0 ? joins : [...byGraph.keys()].map(joinField);
  return {
    ...field,
    type: withName(field.type, widest),
    directives: [...directives.filter((each) => !joins.includes(each)), ...all.map((join) => typed(join, byGraph))],
  };
}

function typed(join: ConstDirectiveNode, byGraph: ReadonlyMap<string, string>): ConstDirectiveNode {
  const type = byGraph.get(argumentOf(join, 'graph') ?? '');
  return type === undefined ? join : withArgument(join, 'type', { kind: Kind.STRING, value: type });
}

function namedType(type: TypeNode): string {
  return type.kind === Kind.NAMED_TYPE ? type.name.value : namedType(type.type);
}

function withName(type: TypeNode, name: string): TypeNode {
  if (type.kind === Kind.NAMED_TYPE) return { ...type, name: { ...type.name, value: name } };
  if (type.kind === Kind.LIST_TYPE) return { ...type, type: withName(type.type, name) };
  const inner = withName(type.type, name);
  return inner.kind === Kind.NON_NULL_TYPE ? inner : { ...type, type: inner };
}
