import {
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isLeafType,
  isListType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql/index.js';
import type { ErrorCode } from '../errors.ts';
import { isIncluded } from './conditions.ts';
import type { CostRules, ListSize } from './cost-rules.ts';
import { type Refused, refusals, requestError } from './errors.ts';
import { isObject, type JsonObject } from './types.ts';

/**
 * The estimated cost of an operation with these variables, which have been coerced.
 *
 * @throws GraphQLError SLICING_ARGUMENT_REQUIRED where `@listSize` needs one argument, and there is not just one.
 */
export type Cost = (variables: Readonly<JsonObject>) => number;

export interface CostScope {
  readonly schema: GraphQLSchema;
  readonly rules: CostRules;
  /** Items of a list of which nothing says how long it is. */
  readonly listSize: number;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Variables of @skip and @include. */
  readonly conditions: Readonly<JsonObject>;
}

const COST_OF_MUTATION = 10;
const COST_OF_OBJECT = 1;

/**
 * Pure. Works out what an operation costs, so that only what depends on variables is left for each
 * request: each object costs one, times the items of the lists around it, unless `@cost` says otherwise
 * (docs/decisions/0480).
 *
 * @param operation is valid, and small enough to have its fragments put in.
 */
export function costOf(operation: OperationDefinitionNode, scope: CostScope): Cost {
  const root = scope.schema.getRootType(operation.operation);
  const base = operation.operation === OperationTypeNode.MUTATION ? COST_OF_MUTATION : 0;
  const formula = new Estimate(scope).ofSets([operation.selectionSet], root ?? undefined, undefined);
  return (variables) => Math.min(base + valueOf(formula, variables), Number.MAX_SAFE_INTEGER);
}

/** Pure. The estimated cost, where it is no more than the limit. */
export function checkedCost(cost: Cost, variables: Readonly<JsonObject>, limit: number): number | Refused {
  try {
    const estimated = cost(variables);
    if (estimated <= limit) return estimated;
    const message = `The operation is estimated to cost ${estimated}, and ${limit} is the most that it may`;
    return refusals([{ message, extensions: { code: 'COST_LIMIT_EXCEEDED', limit, estimated } }]);
  } catch (error) {
    if (error instanceof GraphQLError) return { errors: [requestError(error)] };
    throw error;
  }
}

/** A sum of what is known and what depends on variables. */
interface Formula {
  readonly fixed: number;
  readonly terms: readonly Cost[];
}

const NOTHING: Formula = { fixed: 0, terms: [] };

/** How many items: known, or by variables. */
type Amount = number | Cost;

/** Lists whose length an argument of the field around them says. */
interface Sized {
  readonly names: readonly string[];
  readonly size: Amount;
}

/** One field of one type, with all that is asked of it. */
interface Asked {
  readonly parent: string;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly nodes: [FieldNode, ...FieldNode[]];
}

class Estimate {
  readonly #scope: CostScope;

  constructor(scope: CostScope) {
    this.#scope = scope;
  }

  ofSets(sets: readonly SelectionSetNode[], parent: GraphQLNamedType | undefined, sized: Sized | undefined): Formula {
    const asked = new Map<string, Asked>();
    for (const set of sets) this.#collect(set, parent, asked);
    return [...asked.values()].map((field) => this.#ofField(field, sized)).reduce(plus, NOTHING);
  }

  /** Fields of one name in the answer are one. Those of different types may all be there, and count all. */
  #collect({ selections }: SelectionSetNode, parent: GraphQLNamedType | undefined, asked: Map<string, Asked>): void {
    for (const selection of selections) {
      if (!isIncluded(selection, this.#scope.conditions)) continue;
      if (selection.kind === Kind.FIELD) {
        addField(selection, parent, asked);
        continue;
      }
      const fragment =
        selection.kind === Kind.INLINE_FRAGMENT ? selection : this.#scope.fragments.get(selection.name.value);
      if (fragment === undefined) continue;
      const condition = fragment.typeCondition?.name.value;
      const type = condition === undefined ? parent : this.#scope.schema.getType(condition);
      this.#collect(fragment.selectionSet, type, asked);
    }
  }

  #ofField({ parent, definition, nodes }: Asked, sized: Sized | undefined): Formula {
    const { rules, listSize } = this.#scope;
    const coordinate = `${parent}.${definition.name}`;
    const type = getNamedType(definition.type);
    const rule = rules.listSizes.get(coordinate);
    const size = rule === undefined ? listSize : sizeBy(rule, { coordinate, definition, node: nodes[0], listSize });
    const isOfOthers = rule !== undefined && rule.sizedFields.length > 0;
    const weight =
      rules.weights.get(coordinate) ?? rules.weights.get(type.name) ?? (isLeafType(type) ? 0 : COST_OF_OBJECT);
    const within = this.ofSets(
      nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
      type,
      isOfOthers ? { names: rule.sizedFields, size } : undefined,
    );
    const each = plus({ fixed: weight, terms: [] }, within);
    // The size may be none that is allowed, whatever the items cost.
    const check =
      rule?.requiresOneArgument === true && typeof size !== 'number' ? termOf((given) => 0 * size(given)) : NOTHING;
    const ofArguments = plus(check, this.#ofArguments(coordinate, definition, nodes[0]));
    if (!isListType(getNullableType(definition.type))) return plus(ofArguments, each);
    const own = isOfOthers ? listSize : size;
    return plus(ofArguments, times(sized?.names.includes(definition.name) === true ? sized.size : own, each));
  }

  #ofArguments(coordinate: string, definition: GraphQLField<unknown, unknown>, node: FieldNode): Formula {
    const { weights } = this.#scope.rules;
    const costly = definition.args
      .map(({ name, type }) => ({ name, type, at: `${coordinate}(${name}:)` }))
      .filter(
        ({ type, at }) =>
          isInputObjectType(getNamedType(type)) || weights.has(at) || weights.has(getNamedType(type).name),
      );
    if (costly.length === 0) return NOTHING;
    const cost: Cost = (variables) => {
      const given = getArgumentValues(definition, node, variables);
      return costly.reduce((sum, { name, type, at }) => sum + this.#ofInput(given[name], type, at), 0);
    };
    return hasVariables(node) ? termOf(cost) : { fixed: cost({}), terms: [] };
  }

  /** Each object that is given costs as one that is answered. */
  #ofInput(value: unknown, given: GraphQLInputType, coordinate: string): number {
    if (value === null || value === undefined) return 0;
    const type = getNullableType(given);
    if (isListType(type)) {
      const items: readonly unknown[] = Array.isArray(value) ? value : [value];
      return items.reduce((sum: number, item) => sum + this.#ofInput(item, type.ofType, coordinate), 0);
    }
    const { weights } = this.#scope.rules;
    if (!isInputObjectType(type)) return weights.get(coordinate) ?? weights.get(type.name) ?? 0;
    const members = Object.values(type.getFields()).map((member) =>
      this.#ofInput(isObject(value) ? value[member.name] : undefined, member.type, `${type.name}.${member.name}`),
    );
    return members.reduce((sum, each) => sum + each, weights.get(coordinate) ?? COST_OF_OBJECT);
  }
}

function addField(node: FieldNode, parent: GraphQLNamedType | undefined, asked: Map<string, Asked>): void {
  const name = node.name.value;
  // Introspection is answered here.
  if (parent === undefined || !('getFields' in parent) || name.startsWith('__')) return;
  const key = `${parent.name}.${(node.alias ?? node.name).value}`;
  const known = asked.get(key);
  const definition = parent.getFields()[name];
  if (known !== undefined) known.nodes.push(node);
  else if (definition !== undefined && 'args' in definition)
    asked.set(key, { parent: parent.name, definition, nodes: [node] });
}

interface Sizing {
  readonly coordinate: string;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly node: FieldNode;
  readonly listSize: number;
}

function sizeBy(rule: ListSize, { coordinate, definition, node, listSize }: Sizing): Amount {
  const { slicingArguments, assumedSize = listSize, requiresOneArgument } = rule;
  if (slicingArguments.length === 0) return assumedSize;
  const size: Cost = (variables) => {
    const given = getArgumentValues(definition, node, variables);
    const sizes = slicingArguments.map((name) => given[name]).filter((value) => typeof value === 'number');
    if (requiresOneArgument && sizes.length !== 1) throw slicingError(coordinate, slicingArguments);
    return sizes.length === 0 ? assumedSize : Math.max(0, ...sizes);
  };
  return hasVariables(node) ? size : folded(size);
}

function folded(size: Cost): Amount {
  try {
    return size({});
  } catch {
    // It is told with each request.
    return size;
  }
}

function slicingError(coordinate: string, names: readonly string[]): GraphQLError {
  const code: ErrorCode = 'SLICING_ARGUMENT_REQUIRED';
  return new GraphQLError(`${coordinate} needs just one of the arguments ${names.join(', ')}`, {
    extensions: { code },
  });
}

function hasVariables({ arguments: given = [] }: FieldNode): boolean {
  return given.some(({ value }) => usesVariable(value));
}

function usesVariable(value: ValueNode): boolean {
  if (value.kind === Kind.VARIABLE) return true;
  if (value.kind === Kind.LIST) return value.values.some(usesVariable);
  return value.kind === Kind.OBJECT && value.fields.some((field) => usesVariable(field.value));
}

function termOf(cost: Cost): Formula {
  return { fixed: 0, terms: [cost] };
}

function valueOf({ fixed, terms }: Formula, variables: Readonly<JsonObject>): number {
  return terms.reduce((sum, term) => sum + term(variables), fixed);
}

function plus(a: Formula, b: Formula): Formula {
  return { fixed: a.fixed + b.fixed, terms: b.terms.length === 0 ? a.terms : [...a.terms, ...b.terms] };
}

function times(amount: Amount, each: Formula): Formula {
  if (typeof amount !== 'number') return termOf((variables) => amount(variables) * valueOf(each, variables));
  return { fixed: amount * each.fixed, terms: each.terms.map((term) => (variables) => amount * term(variables)) };
}
