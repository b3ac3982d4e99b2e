import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isAbstractType,
  isObjectType,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
  TypeNameMetaFieldDef,
} from 'graphql/index.js';
import { isIncluded } from './conditions.ts';
import type { FetchedNames } from './fetched-names.ts';
import { type Shape, shapeOf } from './shape.ts';
import type { JsonObject } from './types.ts';

/** What fields are asked of. */
export type CompositeType = GraphQLObjectType | GraphQLInterfaceType;

/** A field as the client gets it. */
export interface SelectedField {
  /** Its name in the answer. */
  readonly key: string;
  readonly name: string;
  /** Its name in what was fetched. */
  readonly fetched: string;
  /** Its type and name, for messages. */
  readonly coordinate: string;
  readonly nodes: readonly FieldNode[];
  /** Undefined for introspection, which is answered otherwise. */
  readonly shape: Shape | undefined;
  /** The caller does not get it, and is told so elsewhere. */
  readonly isWithheld: boolean;
  /** Empty for leaves. */
  readonly selection: Selection;
}

/** An operation, as far as selections depend on it. */
export interface SelectionScope {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Those of @skip and @include. */
  readonly variables: Readonly<JsonObject>;
  /** What the caller does not get. */
  readonly withheld: ReadonlySet<FieldNode>;
  readonly names: FetchedNames;
}

/** What is asked of a value, of whichever type it turns out to be. */
export class Selection {
  readonly #sets: readonly SelectionSetNode[];
  readonly #scope: SelectionScope;
  readonly #byType = new Map<string, readonly SelectedField[]>();

  constructor(sets: readonly SelectionSetNode[], scope: SelectionScope) {
    this.#sets = sets;
    this.#scope = scope;
  }

  /** The fields that an object has, in the order that they are asked for. Of an interface: those asked of any object. */
  fieldsOf(type: CompositeType): readonly SelectedField[] {
    const known = this.#byType.get(type.name);
    if (known !== undefined) return known;
    const nodes = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    for (const { selections } of this.#sets) this.#collect(selections, type, { nodes, spread });
    const fields = [...nodes].map(([key, nodes]) => this.#field(key, nodes, type));
    this.#byType.set(type.name, fields);
    return fields;
  }

  #field(key: string, nodes: readonly FieldNode[], parent: CompositeType): SelectedField {
    const [first] = nodes;
    const name = first?.name.value ?? key;
    const definition = name === TypeNameMetaFieldDef.name ? TypeNameMetaFieldDef : parent.getFields()[name];
    const open = nodes.filter((node) => !this.#scope.withheld.has(node));
    const sets = open.flatMap(({ selectionSet }) => selectionSet ?? []);
    const shape = definition === undefined ? undefined : shapeOf(definition.type, this.#scope.schema);
    return {
      key,
      name,
      fetched: first === undefined ? key : this.#scope.names.of(first),
      coordinate: `${parent.name}.${name}`,
      nodes,
      shape,
      isWithheld: open.length === 0,
      selection: new Selection(sets, this.#scope),
    };
  }

  #collect(
    selections: readonly SelectionNode[],
    type: CompositeType,
    collected: { readonly nodes: Map<string, FieldNode[]>; readonly spread: Set<string> },
  ): void {
    const { nodes, spread } = collected;
    for (const selection of selections) {
      if (!isIncluded(selection, this.#scope.variables)) continue;
      if (selection.kind === Kind.FIELD) {
        const key = (selection.alias ?? selection.name).value;
        const present = nodes.get(key);
        if (present === undefined) nodes.set(key, [selection]);
        else present.push(selection);
        continue;
      }
      const fragment =
        selection.kind === Kind.INLINE_FRAGMENT ? selection : this.#fragment(selection.name.value, spread);
      if (fragment === undefined || !this.#applies(fragment.typeCondition?.name.value, type)) continue;
      this.#collect(fragment.selectionSet.selections, type, collected);
    }
  }

  /** Undefined where it has been spread already: repeated spreads of spreads would grow without end. */
  #fragment(name: string, spread: Set<string>): FragmentDefinitionNode | undefined {
    if (spread.has(name)) return undefined;
    spread.add(name);
    return this.#scope.fragments.get(name);
  }

  #applies(condition: string | undefined, type: CompositeType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const conditionType = this.#scope.schema.getType(condition);
    if (isAbstractType(conditionType)) return this.#scope.schema.isSubType(conditionType, type);
    return isObjectType(conditionType) && conditionType.name === type.name;
  }
}
