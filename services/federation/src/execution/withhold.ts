import {
  type FieldNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  type InlineFragmentNode,
  isAbstractType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  TypeNameMetaFieldDef,
} from 'graphql/index.js';
import type { AccessRule, AccessRules } from './access-rules.ts';
import { isIncluded } from './conditions.ts';
import type { AnswerPath, GraphError, JsonObject } from './types.ts';

/** What a caller of an operation does not get. */
export interface Withheld {
  /** Fields, as they are in the document. They are neither planned nor answered. */
  readonly fields: ReadonlySet<FieldNode>;
  /** Where they are; `@` in a path stands for each item of a list. */
  readonly errors: readonly GraphError[];
}

export interface WithholdScope {
  readonly schema: GraphQLSchema;
  readonly access: AccessRules;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

/** More are of no use to people. */
const MOST_ERRORS = 100;

/** Pure. The rules that an operation depends on, whatever its variables are. */
export function rulesOf(operation: OperationDefinitionNode, scope: WithholdScope): readonly AccessRule[] {
  if (scope.access.size === 0) return [];
  const rules = new Set<AccessRule>();
  const note = (rule: AccessRule): boolean => {
    rules.add(rule);
    return true;
  };
  new Walk(scope, { isMet: note, isAsked: () => true }).operation(operation);
  return [...rules];
}

/**
 * Pure. Finds what a caller may not have who does not meet these rules. A field is withheld for its
 * own rule, for that of the type that it is asked of, and for that of its value's type.
 *
 * @param conditions variables of @skip and @include.
 */
export function withhold(
  operation: OperationDefinitionNode,
  scope: WithholdScope,
  { unmet, conditions }: { readonly unmet: ReadonlySet<AccessRule>; readonly conditions: Readonly<JsonObject> },
): Withheld {
  const walk = new Walk(scope, {
    isMet: (rule) => !unmet.has(rule),
    isAsked: (selection) => isIncluded(selection, conditions),
  });
  if (unmet.size > 0) walk.operation(operation);
  return { fields: walk.fields, errors: [...walk.errors.values()] };
}

interface Tests {
  readonly isMet: (rule: AccessRule) => boolean;
  readonly isAsked: (selection: SelectionNode) => boolean;
}

/** Where selections are asked. */
interface Place {
  readonly type: GraphQLNamedType;
  readonly path: AnswerPath;
  /** Whether it is told already that all of it is withheld. */
  readonly isTold: boolean;
}

class Walk {
  readonly fields = new Set<FieldNode>();
  /** By path. */
  readonly errors = new Map<string, GraphError>();
  readonly #scope: WithholdScope;
  readonly #tests: Tests;

  constructor(scope: WithholdScope, tests: Tests) {
    this.#scope = scope;
    this.#tests = tests;
  }

  operation({ operation, selectionSet }: OperationDefinitionNode): void {
    const type = this.#scope.schema.getRootType(operation);
    if (type) this.#ofSet(selectionSet, { type, path: [], isTold: false });
  }

  #ofSet({ selections }: SelectionSetNode, place: Place): void {
    for (const selection of selections) {
      if (!this.#tests.isAsked(selection)) continue;
      if (selection.kind === Kind.FIELD) this.#field(selection, place);
      else this.#fragment(selection, place);
    }
  }

  #field(node: FieldNode, { type: parent, path, isTold }: Place): void {
    const type = fieldType(node, parent);
    const at = [...path, (node.alias ?? node.name).value];
    if (!this.#isOpen(node, parent, type)) {
      this.fields.add(node);
      if (!isTold) this.#tell(at);
      return;
    }
    if (type === undefined || node.selectionSet === undefined) return;
    const below = isListType(getNullableType(type)) ? [...at, '@'] : at;
    this.#ofSet(node.selectionSet, { type: getNamedType(type), path: below, isTold });
  }

  /** @param type undefined for introspection and names of types. By those clients tell types of an interface apart. */
  #isOpen(node: FieldNode, parent: GraphQLNamedType, type: GraphQLOutputType | undefined): boolean {
    if (type === undefined) return isAbstractType(parent) || this.#meets(parent.name);
    if (!this.#meets(parent.name) || !this.#meets(`${parent.name}.${node.name.value}`)) return false;
    const named = getNamedType(type);
    // What is asked of one type of an interface alone has that type's rule.
    return (isInterfaceType(named) && !asksOfEach(node)) || this.#meets(named.name);
  }

  #fragment(selection: InlineFragmentNode | FragmentSpreadNode, place: Place): void {
    const { schema, fragments } = this.#scope;
    const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
    const condition = fragment?.typeCondition?.name.value;
    const type = condition === undefined ? place.type : schema.getType(condition);
    if (fragment === undefined || type === undefined) return;
    const isWithheld = isObjectType(type) && type !== place.type && !this.#meets(type.name);
    if (isWithheld && !place.isTold) this.#tell([...place.path, `... on ${type.name}`]);
    this.#ofSet(fragment.selectionSet, { type, path: place.path, isTold: place.isTold || isWithheld });
  }

  #meets(coordinate: string): boolean {
    const rule = this.#scope.access.get(coordinate);
    return rule === undefined || this.#tests.isMet(rule);
  }

  #tell(path: AnswerPath): void {
    if (this.errors.size >= MOST_ERRORS) return;
    this.errors.set(JSON.stringify(path), {
      message: 'Unauthorized field or type',
      path,
      extensions: { code: 'UNAUTHORIZED_FIELD_OR_TYPE' },
    });
  }
}

function fieldType({ name }: FieldNode, parent: GraphQLNamedType): GraphQLOutputType | undefined {
  return isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name.value]?.type : undefined;
}

/** Whether fields are asked of whichever type an object has. */
function asksOfEach({ selectionSet }: FieldNode): boolean {
  return selectionSet?.selections.some(isFieldOfEach) === true;
}

function isFieldOfEach(selection: SelectionNode): boolean {
  return selection.kind === Kind.FIELD && selection.name.value !== TypeNameMetaFieldDef.name;
}
