import { type DocumentNode, type FieldDefinitionNode, Kind } from 'graphql/index.js';
import { argumentOf, subgraphsOf, typeNameOf } from './join-directives.ts';

/**
 * Fields of an interface that are resolved where the interface is an object (@interfaceObject), and the
 * types of its objects are not known: by coordinate, with the fields that such subgraphs have of it.
 */
export type UntypedFields = ReadonlyMap<string, ReadonlySet<string>>;

/** An interface that is an object somewhere. */
interface InterfaceObject {
  /** Where it is. */
  readonly graphs: ReadonlySet<string>;
  /** What it has there. */
  readonly fields: ReadonlySet<string>;
}

/** Pure. Reads them from a supergraph. */
export function readUntypedFields({ definitions }: DocumentNode): UntypedFields {
  const interfaces = new Map<string, InterfaceObject>();
  for (const definition of definitions) {
    if (definition.kind !== Kind.INTERFACE_TYPE_DEFINITION) continue;
    const graphs = new Set(subgraphsOf(definition).asObject.map((type) => argumentOf(type, 'graph') ?? ''));
    const fields = definition.fields?.filter((field) => isResolvedIn(field, graphs)).map(({ name }) => name.value);
    if (graphs.size > 0) interfaces.set(definition.name.value, { graphs, fields: new Set(fields) });
  }
  if (interfaces.size === 0) return new Map();
  return new Map(
    definitions.flatMap((definition) => {
      if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION && definition.kind !== Kind.INTERFACE_TYPE_DEFINITION)
        return [];
      return (definition.fields ?? []).flatMap((field) => {
        const known = interfaces.get(typeNameOf(field.type));
        if (known === undefined || !isResolvedIn(field, known.graphs)) return [];
        return [[`${definition.name.value}.${field.name.value}`, known.fields] as const];
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
