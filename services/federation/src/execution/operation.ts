import {
  type DocumentNode,
  executeSync,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  print,
} from 'graphql/index.js';
import { conditionsOf } from './conditions.ts';
import { readDocument } from './document.ts';
import { type Refused, refused } from './errors.ts';
import type { Step } from './plan.ts';
import { asksSubgraphs, plannedDocument } from './planned-document.ts';
import type { MakePlan } from './planner.ts';
import { Selection } from './selection.ts';
import type { JsonObject } from './types.ts';

/** An operation with what its @skip and @include come to. */
export interface Variant {
  readonly selection: Selection;
  /** Undefined: it asks no subgraph. 'impossible': no subgraphs together can answer it. */
  readonly plan: Step | 'impossible' | undefined;
}

/** Of one operation that are kept. */
const MOST_VARIANTS = 16;

/** Reads and checks an operation. Errors are those of the request, before anything is executed. */
export function prepare(
  { query, operationName }: { readonly query: string; readonly operationName: string | undefined },
  { schema, makePlan }: { readonly schema: GraphQLSchema; readonly makePlan: MakePlan },
): Operation | Refused {
  const document = readDocument(query, schema);
  if ('errors' in document) return document;
  const definition = getOperationAST(document, operationName);
  const root = definition && schema.getRootType(definition.operation);
  if (!definition || !root) return refused(whyNone(operationName));
  return new Operation({ definition, root, document, schema, makePlan });
}

function whyNone(operationName: string | undefined): string {
  return operationName === undefined
    ? 'The document has several operations, or none: operationName has to say which'
    : 'The document has no operation of the given operationName';
}

interface Parts {
  readonly definition: OperationDefinitionNode;
  readonly root: GraphQLObjectType;
  readonly document: DocumentNode;
  readonly schema: GraphQLSchema;
  readonly makePlan: MakePlan;
}

/** An operation that is valid for the schema, to be carried out any number of times. */
export class Operation {
  readonly definition: OperationDefinitionNode;
  readonly root: GraphQLObjectType;
  readonly #parts: Parts;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #conditions: readonly string[];
  readonly #variants = new Map<string, Promise<Variant>>();

  constructor(parts: Parts) {
    this.definition = parts.definition;
    this.root = parts.root;
    this.#parts = parts;
    this.#fragments = fragmentsOf(parts.document);
    this.#conditions = conditionsOf(parts.document);
  }

  /** Plans it for these values of its variables, unless it is planned. */
  variant(variables: Readonly<JsonObject>): Promise<Variant> {
    const key = this.#conditions.map((name) => (variables[name] === true ? '1' : '0')).join('');
    const known = this.#variants.get(key);
    if (known !== undefined) return known;
    const variant = this.#plan(variables);
    if (this.#variants.size < MOST_VARIANTS) this.#variants.set(key, variant);
    return variant;
  }

  async #plan(variables: Readonly<JsonObject>): Promise<Variant> {
    const { definition, document, schema, makePlan } = this.#parts;
    // Not all variables: a variant outlives the request, and they may be of one person.
    const conditions = Object.fromEntries(this.#conditions.map((name) => [name, variables[name]]));
    const scope = { schema, fragments: this.#fragments, variables: conditions };
    const selection = new Selection([definition.selectionSet], scope);
    const planned = plannedDocument(document, conditions);
    const name = definition.name?.value;
    if (!asksSubgraphs(planned, name)) return { selection, plan: undefined };
    try {
      return { selection, plan: await makePlan(print(planned), name) };
    } catch {
      return { selection, plan: 'impossible' };
    }
  }

  /** Its fields of introspection, answered, under the names that fields are fetched under. */
  introspect(selection: Selection, variables: Readonly<JsonObject>): JsonObject {
    const fields = selection.fieldsOf(this.root).filter(({ shape }) => shape === undefined);
    if (fields.length === 0) return {};
    const selections = fields.flatMap(({ nodes }) => nodes);
    const asked = { ...this.definition, selectionSet: { kind: Kind.SELECTION_SET, selections } } as const;
    const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [asked, ...this.#fragments.values()] };
    const { data } = executeSync({ schema: this.#parts.schema, document, variableValues: variables });
    return Object.fromEntries(fields.map(({ key, fetched }) => [fetched, data?.[key]]));
  }
}

function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  return new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
}
