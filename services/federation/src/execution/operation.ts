import { commonError } from '@rollcall/platform/common-errors.ts';
import {
  type DocumentNode,
  executeSync,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  print,
} from 'graphql/index.js';
import { LRUCache } from 'lru-cache';
import { type AccessRule, type Caller, meets } from './access-rules.ts';
import { conditionsOf } from './conditions.ts';
import { type Cost, costOf } from './cost.ts';
import type { CostRules } from './cost-rules.ts';
import { readDocument } from './document.ts';
import { type Refused, refused } from './errors.ts';
import { FetchedNames } from './fetched-names.ts';
import { fragmentsOf } from './fragments.ts';
import { askHiddenTypes, type PartlyHidden } from './hidden-types.ts';
import { askInterfaces } from './interface-fields.ts';
import type { OperationLimits } from './limits.ts';
import { placeOf } from './overrides.ts';
import type { Step } from './plan.ts';
import { asksSubgraphs, plannedDocument } from './planned-document.ts';
import { type MakePlan, PlanLimitError, ProcessLostError } from './planner.ts';
import { Selection } from './selection.ts';
import type { Supergraph } from './supergraph.ts';
import type { GraphError, JsonObject } from './types.ts';
import { rulesOf, type WithholdScope, withhold } from './withhold.ts';

/** An operation with what its @skip and @include come to, for callers who may have the same of it. */
export interface Variant {
  readonly selection: Selection;
  readonly cost: Cost;
  /** What the caller does not get. */
  readonly withheld: readonly GraphError[];
  /** Whether that is all of it. */
  readonly isWithheld: boolean;
  /**
   * Plans it, unless it is planned. Undefined: it asks no subgraph. 'impossible': no subgraphs together
   * can answer it. 'too large': to plan it takes too long.
   *
   * @throws ServiceError UNAVAILABLE where the planner was lost.
   */
  readonly plan: () => Promise<Step | 'impossible' | 'too large' | undefined>;
}

/** Of one operation that are kept: those last asked for. */
const MOST_VARIANTS = 16;
/** As measured, of small documents and of large ones. */
const BYTES = { ofOperation: 10_000, perCharacter: 200, perCharacterOfVariant: 25 };

/** What operations are checked against. */
export interface Ground {
  readonly schema: GraphQLSchema;
  readonly supergraph: Supergraph;
  readonly partlyHidden: PartlyHidden;
  readonly makePlan: MakePlan;
  readonly costRules: CostRules;
  readonly limits: OperationLimits;
}

/** Reads and checks an operation. Errors are those of the request, before anything is executed. */
export function prepare(
  { query, operationName }: { readonly query: string; readonly operationName: string | undefined },
  ground: Ground,
): Operation | Refused {
  const { schema, limits } = ground;
  const document = readDocument(query, schema, limits);
  if ('errors' in document) return document;
  const definition = getOperationAST(document, operationName);
  const root = definition && schema.getRootType(definition.operation);
  if (!definition || !root) return refused(whyNone(operationName));
  return new Operation({ ...ground, definition, root, document, length: query.length });
}

function whyNone(operationName: string | undefined): string {
  return operationName === undefined
    ? 'The document has several operations, or none: operationName has to say which'
    : 'The document has no operation of the given operationName';
}

interface Parts extends Ground {
  readonly definition: OperationDefinitionNode;
  readonly root: GraphQLObjectType;
  readonly document: DocumentNode;
  /** Of the document, in characters. */
  readonly length: number;
}

/** What a variant depends on. */
interface Choices {
  /** Values of the variables of @skip and @include. */
  readonly conditions: Readonly<JsonObject>;
  readonly unmet: ReadonlySet<AccessRule>;
  readonly place: number;
}

interface Planned extends Omit<Choices, 'unmet'> {
  readonly withheld: ReadonlySet<FieldNode>;
}

/** An operation that is valid for the schema, to be carried out any number of times. */
export class Operation {
  readonly definition: OperationDefinitionNode;
  readonly root: GraphQLObjectType;
  /** About what it may come to in memory, with all that is kept of it. */
  readonly bytes: number;
  readonly #parts: Parts;
  readonly #scope: WithholdScope & { readonly names: FetchedNames };
  readonly #rules: readonly AccessRule[];
  readonly #conditions: readonly string[];
  readonly #variants = new LRUCache<string, Variant>({ max: MOST_VARIANTS });

  constructor(parts: Parts) {
    this.definition = parts.definition;
    this.root = parts.root;
    this.#parts = parts;
    const { document, length, schema, supergraph } = parts;
    this.#scope = {
      schema,
      access: supergraph.access,
      fragments: fragmentsOf(document),
      names: new FetchedNames(document),
    };
    this.#rules = rulesOf(this.definition, this.#scope);
    this.#conditions = conditionsOf(document);
    const variants = Math.min(MOST_VARIANTS, 2 ** (this.#conditions.length + this.#rules.length));
    this.bytes = BYTES.ofOperation + length * (BYTES.perCharacter + BYTES.perCharacterOfVariant * variants);
  }

  /** What it is with these values of its variables, for a caller who gets the same as this one. */
  variant(variables: Readonly<JsonObject>, caller: Caller | undefined, drawnPlace?: number): Variant {
    const met = this.#rules.map((rule) => meets(caller, rule));
    const place = placeOf(caller, this.#parts.supergraph.overrideShares, drawnPlace);
    const bits = [...this.#conditions.map((name) => variables[name] === true), ...met].map(Number).join('');
    const key = `${bits} ${place}`;
    const known = this.#variants.get(key);
    if (known !== undefined) return known;
    // Not all variables: a variant outlives the request, and they may be of one person.
    const conditions = Object.fromEntries(this.#conditions.map((name) => [name, variables[name]]));
    const unmet = new Set(this.#rules.filter((_, index) => met[index] === false));
    const variant = this.#variant({ conditions, unmet, place });
    this.#variants.set(key, variant);
    return variant;
  }

  #variant({ conditions, unmet, place }: Choices): Variant {
    const { definition, costRules: rules, limits } = this.#parts;
    const scope = this.#scope;
    const { fields, errors } = withhold(definition, scope, { unmet, conditions });
    const selection = new Selection([definition.selectionSet], { ...scope, variables: conditions, withheld: fields });
    const asked = selection.fieldsOf(this.root);
    const make = () => this.#plan({ conditions, place, withheld: fields });
    let plan: ReturnType<Variant['plan']> | undefined;
    return {
      selection,
      cost: costOf(definition, { ...scope, rules, listSize: limits.listSize, conditions }),
      withheld: errors,
      isWithheld: asked.length > 0 && asked.every(({ isWithheld }) => isWithheld),
      plan() {
        plan ??= make().catch((error: unknown) => {
          plan = undefined;
          throw error;
        });
        return plan;
      },
    };
  }

  async #plan({ conditions, place, withheld }: Planned): ReturnType<Variant['plan']> {
    const { definition, schema, supergraph, partlyHidden, makePlan } = this.#parts;
    const { fragments, names } = this.#scope;
    const fields = plannedDocument(definition, { schema, fragments, variables: conditions, withheld, names });
    const typed = askHiddenTypes(fields, schema, partlyHidden);
    const planned = askInterfaces(typed, schema, supergraph.untypedFields);
    if (!asksSubgraphs(planned)) return undefined;
    try {
      return await makePlan({ query: print(planned), operationName: definition.name?.value, place });
    } catch (error) {
      if (error instanceof ProcessLostError) throw commonError('UNAVAILABLE', { cause: error });
      return error instanceof PlanLimitError ? 'too large' : 'impossible';
    }
  }

  /** Its fields of introspection, answered, under the names that fields are fetched under. */
  introspect(selection: Selection, variables: Readonly<JsonObject>): JsonObject {
    const fields = selection.fieldsOf(this.root).filter(({ shape, isWithheld }) => shape === undefined && !isWithheld);
    if (fields.length === 0) return {};
    const selections = fields.flatMap(({ nodes }) => nodes);
    const asked = { ...this.definition, selectionSet: { kind: Kind.SELECTION_SET, selections } } as const;
    const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [asked, ...this.#scope.fragments.values()] };
    const { data } = executeSync({ schema: this.#parts.schema, document, variableValues: variables });
    return Object.fromEntries(fields.map(({ key, fetched }) => [fetched, data?.[key]]));
  }
}
