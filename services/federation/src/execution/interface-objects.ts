import { type DocumentNode, type FieldDefinitionNode, Kind } from 'graphql/index.js';
import { argumentOf, fieldsOf, subgraphsOf, typeNameOf } from './join-directives.ts';

/** Fields of an interface that is an object somewhere (@interfaceObject), by coordinate. */
export type UntypedFields = ReadonlyMap<string, UntypedField>;

export interface UntypedField extends InterfaceObject {
  /** Whether it is resolved where the interface is an object, and the types of its objects are not known. */
  readonly isUntyped: boolean;
}

/** An interface that is an object somewhere. */
interface InterfaceObject {
  /** Where it is. */
  readonly graphs: ReadonlySet<string>;
  /** What it has there. */
  readonly fields: ReadonlySet<string>;
  /** Those that are in a key there. */
  readonly keys: ReadonlySet<string>;
}

/** Pure. Reads them from a supergraph. */
export function readUntypedFields({ definitions }: DocumentNode): UntypedFields {
  const interfaces = new Map<string, InterfaceObject>();
  for (const definition of definitions) {
    if (definition.kind !== Kind.INTERFACE_TYPE_DEFINITION) continue;
    const { asObject } = subgraphsOf(definition);
    const graphs = new Set(asObject.map((type) => argumentOf(type, 'graph') ?? ''));
    const keys = new Set(asObject.flatMap((type) => fieldsOf(argumentOf(type, 'key'))));
    const fields = definition.fields?.filter((field) => isResolvedIn(field, graphs)).map(({ name }) => name.value);
    if (graphs.size > 0) interfaces.set(definition.name.value, { graphs, fields: new Set(fields), keys });
  }
  if (interfaces.size === 0) return new Map();
  return new Map(
    definitions.flatMap((definition) => {
      if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION && definition.kind !== Kind.INTERFACE_TYPE_DEFINITION)
        return [];
      return (definition.fields ?? []).flatMap((field) => {
        const known = interfaces.get(typeNameOf(field.type));
        if (known === undefined) return [];
        const untyped = { ...known, isUntyped: isResolvedIn(field, known.graphs) };
        return [[`${definition.name.value}.${field.name.value}`, untyped] as const];
      });
    }),
  );
}

/** Without a directive, every subgraph of the type resolves the field. */
function isResolvedIn({ directives = [] }: FieldDefinitionNode, graphs: ReadonlySet<string>): boolean {
  const joins = directives.filter(({ name }) => name.value === 'join__field');
  const resolvers = joins.filter((join) => argumentOf(join, 'external') !== 'true');
  return joins.length === 0 ? graphs.size > 0 : resolvers.some((join) => graphs.has(argumentOf(join, 'graph') ?? ''));
}
