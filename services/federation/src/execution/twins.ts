import {
  type ConstDirectiveNode,
  type DocumentNode,
  type EnumTypeDefinitionNode,
  type EnumValueDefinitionNode,
  type FieldDefinitionNode,
  type InterfaceTypeDefinitionNode,
  Kind,
  type ObjectTypeDefinitionNode,
} from 'graphql/index.js';
import { withDefinitions } from './definitions.ts';
import { argumentOf, fieldsOf, graphOf, joinField, joinsOf, nameNode, typeNameOf } from './join-directives.ts';

/** Fields of a type that a twin has in place of its subgraph, by the subgraph. */
type Moved = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Gives subgraphs twins for fields that require others, of types that lead back to themselves there. The
 * planner finds no way to such a field from an entity of the same type in the same subgraph. A field that
 * requires others takes a call of its own anyway.
 *
 * @returns the document itself where there are none, and names of subgraphs by those of their twins.
 */
export function withTwins(document: DocumentNode): {
  readonly document: DocumentNode;
  readonly twins: ReadonlyMap<string, string>;
} {
  const twins = new Map<string, string>();
  const moves = movesOf(document);
  if (moves.size === 0) return { document, twins };
  const graphs = new Set([...moves.values()].flatMap((moved) => [...moved.keys()]));
  const ofRoot = new Map([...graphs].map((graph) => [graph, new Set<string>()]));
  const changed = withDefinitions(document, (node) => {
    if (node.kind === Kind.SCALAR_TYPE_DEFINITION) return withJoins(node, graphs);
    if (node.kind === Kind.ENUM_TYPE_DEFINITION) {
      if (node.name.value === 'join__Graph') return withGraphs(node, graphs, twins);
      return { ...withJoins(node, graphs), values: node.values?.map((value) => withJoins(value, graphs)) ?? [] };
    }
    if (node.kind !== Kind.OBJECT_TYPE_DEFINITION) return node;
    const moved = node.name.value === 'Query' ? ofRoot : moves.get(node.name.value);
    return moved === undefined ? node : shared(node, moved);
  });
  return { document: changed, twins };
}

function movesOf({ definitions }: DocumentNode): ReadonlyMap<string, Moved> {
  const types = new Map(
    definitions.flatMap((type) =>
      type.kind === Kind.OBJECT_TYPE_DEFINITION || type.kind === Kind.INTERFACE_TYPE_DEFINITION
        ? [[type.name.value, type] as const]
        : [],
    ),
  );
  const objectsOf = new Map<string, string[]>();
  for (const type of definitions) {
    if (type.kind === Kind.UNION_TYPE_DEFINITION) {
      objectsOf.set(type.name.value, type.types?.map(({ name }) => name.value) ?? []);
    } else if (type.kind === Kind.OBJECT_TYPE_DEFINITION) {
      for (const { name } of type.interfaces ?? []) {
        objectsOf.set(name.value, [...(objectsOf.get(name.value) ?? []), type.name.value]);
      }
    }
  }
  const all = { types, objectsOf };
  return new Map(
    [...types.values()].flatMap((type) => {
      const moved = type.kind === Kind.OBJECT_TYPE_DEFINITION ? movedOf(type, all) : new Map();
      return moved.size === 0 ? [] : [[type.name.value, moved] as const];
    }),
  );
}

interface Types {
  readonly types: ReadonlyMap<string, ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode>;
  /** By interface and union. */
  readonly objectsOf: ReadonlyMap<string, readonly string[]>;
}

/** Only leaves that no interface has, of types whose keys are leaves: the twin has no other types. */
function movedOf(type: ObjectTypeDefinitionNode, all: Types): Moved {
  const { fields = [], interfaces = [] } = type;
  const ofInterfaces = new Set(
    interfaces.flatMap(({ name }) => all.types.get(name.value)?.fields?.map((field) => field.name.value) ?? []),
  );
  const moved = new Map<string, Set<string>>();
  for (const field of fields) {
    const ofType = typeNameOf(field.type);
    if (ofInterfaces.has(field.name.value) || all.types.has(ofType) || all.objectsOf.has(ofType)) continue;
    for (const join of joinsOf(field)) {
      if (argumentOf(join, 'requires') === undefined) continue;
      const graph = graphOf(join);
      const known = moved.get(graph);
      if (known !== undefined) known.add(field.name.value);
      else if (hasPlainKeys(type, graph) && leadsToItself(type, graph, all)) {
        moved.set(graph, new Set([field.name.value]));
      }
    }
  }
  return moved;
}

function hasPlainKeys({ directives = [] }: ObjectTypeDefinitionNode, graph: string): boolean {
  const joins = directives.filter((join) => join.name.value === 'join__type' && graphOf(join) === graph);
  return joins.every((join) => !(argumentOf(join, 'key') ?? '').includes('{'));
}

/** Whether one call of a subgraph may go on from an object of a type to another one. */
function leadsToItself(type: ObjectTypeDefinitionNode, graph: string, { types, objectsOf }: Types): boolean {
  const seen = new Set<string>();
  const next = [type];
  for (let at = next.pop(); at !== undefined; at = next.pop()) {
    const fields = at.fields?.filter((field) => isIn(field, graph)) ?? [];
    for (const name of fields.flatMap((field) => objectsOf.get(typeNameOf(field.type)) ?? [typeNameOf(field.type)])) {
      if (name === type.name.value) return true;
      const found = types.get(name);
      if (found?.kind !== Kind.OBJECT_TYPE_DEFINITION || seen.has(name)) continue;
      seen.add(name);
      next.push(found);
    }
  }
  return false;
}

function isIn(field: FieldDefinitionNode, graph: string): boolean {
  const joins = joinsOf(field);
  return joins.length === 0 || joins.some((join) => graphOf(join) === graph);
}

/** The type as a subgraph and its twin have it together. */
function shared(node: ObjectTypeDefinitionNode, moved: Moved): ObjectTypeDefinitionNode {
  const { directives = [], fields = [] } = node;
  const types = directives.filter(({ name }) => name.value === 'join__type');
  const graphs = [...new Set(types.map(graphOf))];
  const keys = new Map(
    [...moved.keys()].map((graph) => {
      const ofGraph = types.filter((join) => graphOf(join) === graph);
      return [graph, new Set(ofGraph.flatMap((join) => fieldsOf(argumentOf(join, 'key'))))] as const;
    }),
  );
  const joined = fields.map((field) => {
    const joins = joinsOf(field);
    const others = field.directives?.filter((directive) => !joins.includes(directive)) ?? [];
    const name = field.name.value;
    // Without a directive, every subgraph of the type has the field: with the twin it would be one more.
    const own = (joins.length > 0 ? joins : graphs.map(joinField)).map((join) =>
      moved.get(graphOf(join))?.has(name) === true ? ofTwin(join) : join,
    );
    const ofKeys = [...keys].flatMap(([graph, names]) => (names.has(name) ? [ofTwin(joinField(graph))] : []));
    return { ...field, directives: [...others, ...own, ...ofKeys] };
  });
  return { ...withJoins(node, new Set(moved.keys())), fields: joined };
}

/** With what it says of subgraphs said of their twins, too. */
function withJoins<Node extends { readonly directives?: readonly ConstDirectiveNode[] | undefined }>(
  node: Node,
  graphs: ReadonlySet<string>,
): Node {
  const { directives = [] } = node;
  const joins = directives.filter(({ name }) => name.value === 'join__type' || name.value === 'join__enumValue');
  return { ...node, directives: [...directives, ...joins.filter((join) => graphs.has(graphOf(join))).map(ofTwin)] };
}

function withGraphs(
  node: EnumTypeDefinitionNode,
  graphs: ReadonlySet<string>,
  twins: Map<string, string>,
): EnumTypeDefinitionNode {
  const { values = [] } = node;
  const added = values.flatMap((value) => (graphs.has(value.name.value) ? [twinValue(value, twins)] : []));
  return { ...node, values: [...values, ...added] };
}

function twinValue(value: EnumValueDefinitionNode, twins: Map<string, string>): EnumValueDefinitionNode {
  const directives = value.directives?.map((directive) => {
    const name = argumentOf(directive, 'name') ?? '';
    twins.set(`${name}+`, name);
    return withValue(directive, 'name', { kind: Kind.STRING, value: `${name}+` });
  });
  return { ...value, name: nameNode(twinOf(value.name.value)), directives: directives ?? [] };
}

function twinOf(graph: string): string {
  return `${graph}__TWIN`;
}

function ofTwin(join: ConstDirectiveNode): ConstDirectiveNode {
  return withValue(join, 'graph', { kind: Kind.ENUM, value: twinOf(graphOf(join)) });
}

function withValue(
  directive: ConstDirectiveNode,
  name: string,
  value: { readonly kind: Kind.ENUM | Kind.STRING; readonly value: string },
): ConstDirectiveNode {
  const given = directive.arguments?.map((one) => (one.name.value === name ? { ...one, value } : one));
  return { ...directive, arguments: given ?? [] };
}
