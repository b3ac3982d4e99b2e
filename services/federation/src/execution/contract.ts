import {
  type ConstDirectiveNode,
  type DefinitionNode,
  type DocumentNode,
  type EnumTypeDefinitionNode,
  type FieldDefinitionNode,
  type InputObjectTypeDefinitionNode,
  type InputValueDefinitionNode,
  type InterfaceTypeDefinitionNode,
  isTypeDefinitionNode,
  Kind,
  type ObjectTypeDefinitionNode,
  specifiedScalarTypes,
  type TypeDefinitionNode,
  type TypeNode,
  type UnionTypeDefinitionNode,
} from 'graphql/index.js';
import { argumentOf, typeNameOf } from './join-directives.ts';

/** What of the graph a contract has, by the names in `@tag`. */
export interface ContractFilter {
  /** Fields that have one of them, or whose type has; empty: all fields. */
  readonly include: readonly string[];
  /** Whatever has one of them is not there. */
  readonly exclude: readonly string[];
}

/** By name; those that something needs and that are gone are not in it. */
type Definitions = ReadonlyMap<string, TypeDefinitionNode>;

const ROOTS = ['Query', 'Mutation', 'Subscription'];
const BUILT_IN = new Set(specifiedScalarTypes.map(({ name }) => name));

/**
 * Pure. What clients of a contract see. Beside what the filter takes away, it lacks what would lead
 * there, and what nothing leads to.
 *
 * @param graph what all other clients see. @param tagged the supergraph, with its tags.
 * @returns undefined where there is no query left.
 */
export function contractDocument(
  graph: DocumentNode,
  tagged: DocumentNode,
  filter: ContractFilter,
): DocumentNode | undefined {
  const tags = tagsOf(tagged);
  let types: Definitions = new Map(
    graph.definitions.filter(isTypeDefinitionNode).flatMap((type) => {
      const kept = filtered(type, tags, filter);
      return kept === undefined ? [] : [[kept.name.value, kept]];
    }),
  );
  for (let before = -1; before !== sizeOf(types); ) {
    before = sizeOf(types);
    types = new Map([...types].flatMap(([name, type]) => withoutGone(type, types).map((kept) => [name, kept])));
  }
  if (!types.has('Query')) return undefined;
  const reached = reachable(types);
  const kept = new Map([...types].filter(([name]) => reached.has(name)));
  const others = graph.definitions.filter((definition) => isDirectiveOf(definition, kept));
  return { kind: Kind.DOCUMENT, definitions: [...others, ...kept.values()] };
}

type Tags = ReadonlyMap<string, readonly string[]>;

/** By coordinate. */
function tagsOf({ definitions }: DocumentNode): Tags {
  const tags = new Map<string, readonly string[]>();
  const add = (coordinate: string, directives: readonly ConstDirectiveNode[] = []) => {
    const names = directives.filter(({ name }) => name.value === 'tag').map((tag) => argumentOf(tag, 'name') ?? '');
    if (names.length > 0) tags.set(coordinate, names);
  };
  for (const type of definitions.filter(isTypeDefinitionNode)) {
    const name = type.name.value;
    add(name, type.directives);
    for (const member of membersOf(type)) {
      const coordinate = `${name}.${member.name.value}`;
      add(coordinate, member.directives);
      if (member.kind !== Kind.FIELD_DEFINITION) continue;
      for (const argument of member.arguments ?? []) add(`${coordinate}(${argument.name.value}:)`, argument.directives);
    }
  }
  return tags;
}

function membersOf(type: TypeDefinitionNode) {
  if ('fields' in type) return type.fields ?? [];
  return 'values' in type ? (type.values ?? []) : [];
}

/** A type with what the filter leaves of it. */
function filtered(type: TypeDefinitionNode, tags: Tags, filter: ContractFilter): TypeDefinitionNode | undefined {
  const name = type.name.value;
  const isExcluded = (coordinate: string) => tags.get(coordinate)?.some((tag) => filter.exclude.includes(tag)) === true;
  const isIncluded = (coordinate: string) => tags.get(coordinate)?.some((tag) => filter.include.includes(tag)) === true;
  if (isExcluded(name)) return undefined;
  const isTaken = ({ name: member }: { readonly name: { readonly value: string } }) =>
    !isExcluded(`${name}.${member.value}`);
  switch (type.kind) {
    case Kind.OBJECT_TYPE_DEFINITION:
    case Kind.INTERFACE_TYPE_DEFINITION: {
      const areAll = filter.include.length === 0 || isIncluded(name);
      const taken = type.fields?.filter(
        (field) => isTaken(field) && (areAll || isIncluded(`${name}.${field.name.value}`)),
      );
      const fields = taken?.flatMap((field) =>
        withArguments(field, (argument) => !isExcluded(`${name}.${field.name.value}(${argument}:)`)),
      );
      return { ...type, fields: fields ?? [] };
    }
    case Kind.INPUT_OBJECT_TYPE_DEFINITION:
      return withInputFields(type, isTaken);
    case Kind.ENUM_TYPE_DEFINITION:
      return { ...type, values: type.values?.filter(isTaken) ?? [] };
    case Kind.SCALAR_TYPE_DEFINITION:
    case Kind.UNION_TYPE_DEFINITION:
  }
  return type;
}

/** A type without what leads to a type that is gone; nothing where nothing is left. */
function withoutGone(type: TypeDefinitionNode, types: Definitions): readonly TypeDefinitionNode[] {
  const isThere = ({ type: of }: { readonly type: TypeNode }) => isKnown(typeNameOf(of), types);
  switch (type.kind) {
    case Kind.OBJECT_TYPE_DEFINITION:
    case Kind.INTERFACE_TYPE_DEFINITION: {
      const fields = type.fields
        ?.filter(isThere)
        .flatMap((field) =>
          withArguments(
            field,
            (name) => field.arguments?.some((each) => each.name.value === name && isThere(each)) === true,
          ),
        );
      const interfaces = type.interfaces?.filter(({ name }) => hasFieldsOf(type, types.get(name.value)));
      return some({ ...type, fields: fields ?? [], interfaces: interfaces ?? [] }, fields);
    }
    case Kind.INPUT_OBJECT_TYPE_DEFINITION: {
      const left = withInputFields(type, isThere);
      return some(left, left.fields);
    }
    case Kind.UNION_TYPE_DEFINITION: {
      const members = type.types?.filter(({ name }) => types.has(name.value)) ?? [];
      return some({ ...type, types: members }, members);
    }
    case Kind.ENUM_TYPE_DEFINITION:
      return some(type, type.values);
    case Kind.SCALAR_TYPE_DEFINITION:
  }
  return [type];
}

/** A field with some of its arguments; nothing where it cannot be without another one. */
function withArguments(field: FieldDefinitionNode, isKept: (name: string) => boolean): readonly FieldDefinitionNode[] {
  const [kept, gone] = partition(field.arguments ?? [], ({ name }) => isKept(name.value));
  return gone.some(isRequired) ? [] : [{ ...field, arguments: kept }];
}

/** An input with some of its fields; without any where it cannot be without another one. */
function withInputFields(
  type: InputObjectTypeDefinitionNode,
  isKept: (field: InputValueDefinitionNode) => boolean,
): InputObjectTypeDefinitionNode {
  const [kept, gone] = partition(type.fields ?? [], isKept);
  return { ...type, fields: gone.some(isRequired) ? [] : kept };
}

function partition<T>(all: readonly T[], isKept: (one: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(isKept), all.filter((one) => !isKept(one))];
}

function isRequired({ type, defaultValue }: InputValueDefinitionNode): boolean {
  return type.kind === Kind.NON_NULL_TYPE && defaultValue === undefined;
}

/** A type with what is left of its members; nothing where nothing is. */
function some(left: TypeDefinitionNode, members: readonly unknown[] | undefined): readonly TypeDefinitionNode[] {
  return members === undefined || members.length === 0 ? [] : [left];
}

type WithFields = ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode;

/** Whether the type may go on to implement an interface. */
function hasFieldsOf({ fields = [] }: WithFields, implemented: TypeDefinitionNode | undefined): boolean {
  if (implemented?.kind !== Kind.INTERFACE_TYPE_DEFINITION) return false;
  return implemented.fields?.every(({ name }) => fields.some((field) => field.name.value === name.value)) ?? true;
}

function reachable(types: Definitions): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = ROOTS.filter((name) => types.has(name));
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const type = types.get(name);
    if (type === undefined || reached.has(name)) continue;
    reached.add(name);
    waiting.push(...neededBy(type));
    if (type.kind === Kind.INTERFACE_TYPE_DEFINITION) waiting.push(...implementersOf(name, types));
  }
  return reached;
}

function neededBy(
  type: TypeDefinitionNode | EnumTypeDefinitionNode | InputObjectTypeDefinitionNode | UnionTypeDefinitionNode,
): readonly string[] {
  const ofUnion = 'types' in type ? (type.types ?? []).map(({ name }) => name.value) : [];
  const interfaces = 'interfaces' in type ? (type.interfaces ?? []).map(({ name }) => name.value) : [];
  const fields: readonly (FieldDefinitionNode | InputValueDefinitionNode)[] =
    'fields' in type ? (type.fields ?? []) : [];
  const ofFields = fields.flatMap((field) => [
    typeNameOf(field.type),
    ...('arguments' in field ? (field.arguments ?? []).map((argument) => typeNameOf(argument.type)) : []),
  ]);
  return [...ofUnion, ...interfaces, ...ofFields];
}

function implementersOf(name: string, types: Definitions): readonly string[] {
  return [...types.values()]
    .filter((type) => 'interfaces' in type && type.interfaces?.some((each) => each.name.value === name))
    .map((type) => type.name.value);
}

function isKnown(name: string, types: Definitions): boolean {
  return BUILT_IN.has(name) || types.has(name);
}

/** Changes with everything that may go. */
function sizeOf(types: Definitions): number {
  let size = types.size;
  for (const type of types.values()) size += neededBy(type).length + membersOf(type).length;
  return size;
}

/** A directive that needs no type that is gone. */
function isDirectiveOf(definition: DefinitionNode, types: Definitions): boolean {
  if (definition.kind !== Kind.DIRECTIVE_DEFINITION) return false;
  return definition.arguments?.every(({ type }) => isKnown(typeNameOf(type), types)) ?? true;
}
