import { type DocumentNode, Kind } from 'graphql/index.js';
import { type AccessRules, readAccessRules } from './access-rules.ts';
import { readUntypedFields, type UntypedFields } from './interface-objects.ts';
import { argumentsOf } from './join-directives.ts';
import { type OverrideShares, readOverrideShares } from './overrides.ts';

/** What the supergraph has beside its API schema: the subgraphs, and what clients do not see. */
export interface Supergraph {
  /** URLs by name. */
  readonly subgraphs: ReadonlyMap<string, string>;
  /** Object types by the interfaces and unions that they are in, hidden ones too. */
  readonly objectsOf: ReadonlyMap<string, ReadonlySet<string>>;
  /** All object types, hidden ones too. */
  readonly objects: ReadonlySet<string>;
  /** Values by enum, hidden ones too. */
  readonly enumValues: ReadonlyMap<string, ReadonlySet<string>>;
  readonly access: AccessRules;
  readonly untypedFields: UntypedFields;
  readonly overrideShares: OverrideShares;
}

/** Reads a supergraph as the specification of `join` v0.3 and later writes it. */
export function readSupergraph(document: DocumentNode): Supergraph {
  const subgraphs = new Map<string, string>();
  const objectsOf = new Map<string, Set<string>>();
  const objects = new Set<string>();
  const enumValues = new Map<string, ReadonlySet<string>>();
  const add = (abstract: string, object: string) => {
    const known = objectsOf.get(abstract);
    if (known === undefined) objectsOf.set(abstract, new Set([object]));
    else known.add(object);
  };
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OBJECT_TYPE_DEFINITION) {
      objects.add(definition.name.value);
      for (const { name } of definition.interfaces ?? []) add(name.value, definition.name.value);
    } else if (definition.kind === Kind.UNION_TYPE_DEFINITION) {
      for (const { name } of definition.types ?? []) add(definition.name.value, name.value);
    } else if (definition.kind === Kind.ENUM_TYPE_DEFINITION) {
      enumValues.set(definition.name.value, new Set(definition.values?.map(({ name }) => name.value)));
      if (definition.name.value !== 'join__Graph') continue;
      for (const { directives } of definition.values ?? []) {
        const { name, url } = argumentsOf(directives, 'join__graph') ?? {};
        if (typeof name === 'string') subgraphs.set(name, typeof url === 'string' ? url : '');
      }
    }
  }
  const hidden = { subgraphs, objectsOf, objects, enumValues, access: readAccessRules(document) };
  return { ...hidden, untypedFields: readUntypedFields(document), overrideShares: readOverrideShares(document) };
}

/** Whether an object of the type is of one of the types, which may be interfaces or unions. */
export function isOfTypes(supergraph: Supergraph, typename: string, types: readonly string[]): boolean {
  return types.some((type) => type === typename || supergraph.objectsOf.get(type)?.has(typename) === true);
}
