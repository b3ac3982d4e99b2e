import {
  type DocumentNode,
  executeSync,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type NameNode,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  type SelectionSetNode,
  specifiedRules,
  type ValidationRule,
  validate,
  visit,
} from 'graphql/index.js';
import { type Refused, refused, requestError } from './errors.ts';
import { isTooLarge } from './expansion.ts';
import { fetchedName } from './fetched-name.ts';
import type { Step } from './plan.ts';
import type { MakePlan } from './planner.ts';
import { Selection } from './selection.ts';
import type { JsonObject } from './types.ts';

/** Reads, checks and plans an operation. Errors are those of the request, before anything is executed. */
export async function prepare(
  { query, operationName }: { readonly query: string; readonly operationName: string | undefined },
  { schema, makePlan }: { readonly schema: GraphQLSchema; readonly makePlan: MakePlan },
): Promise<Operation | Refused> {
  const document = readDocument(query, schema);
  if ('errors' in document) return document;
  const definition = getOperationAST(document, operationName);
  const root = definition && schema.getRootType(definition.operation);
  if (!definition || !root) return refused(whyNone(operationName));
  if (definition.operation === OperationTypeNode.SUBSCRIPTION) return refused('Subscriptions need another transport');
  const plan = await planOf(document, definition, makePlan);
  return new Operation({ definition, root, plan, document, schema });
}

/** An operation that is valid for the schema, ready to be carried out any number of times. */
export class Operation {
  readonly definition: OperationDefinitionNode;
  readonly root: GraphQLObjectType;
  /** Undefined: it asks no subgraph. 'impossible': no subgraphs together can answer it. */
  readonly plan: Step | 'impossible' | undefined;
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #conditions: readonly string[];
  readonly #selections = new Map<string, Selection>();

  constructor({ definition, root, plan, document, schema }: Parts) {
    this.definition = definition;
    this.root = root;
    this.plan = plan;
    this.#schema = schema;
    this.#fragments = fragmentsOf(document);
    this.#conditions = conditionsOf(document);
  }

  /** What it selects with these values of its variables. */
  select(variables: Readonly<JsonObject>): Selection {
    const key = this.#conditions.map((name) => (variables[name] === true ? '1' : '0')).join('');
    const known = this.#selections.get(key);
    if (known !== undefined) return known;
    // Not all of them: it outlives the request, and they may be of one person.
    const conditions = Object.fromEntries(this.#conditions.map((name) => [name, variables[name]]));
    const scope = { schema: this.#schema, fragments: this.#fragments, variables: conditions };
    const selection = new Selection([this.definition.selectionSet], scope);
    if (this.#selections.size < MOST_SELECTIONS) this.#selections.set(key, selection);
    return selection;
  }

  /** Its fields of introspection, answered, under the names that fields are fetched under. */
  introspect(selection: Selection, variables: Readonly<JsonObject>): JsonObject {
    const fields = selection.fieldsOf(this.root).filter(({ name }) => isIntrospection(name));
    if (fields.length === 0) return {};
    const selections = fields.flatMap(({ nodes }) => nodes);
    const asked = { ...this.definition, selectionSet: { kind: Kind.SELECTION_SET, selections } } as const;
    const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [asked, ...this.#fragments.values()] };
    const { data } = executeSync({ schema: this.#schema, document, variableValues: variables });
    return Object.fromEntries(fields.map(({ key, fetched }) => [fetched, data?.[key]]));
  }
}

interface Parts extends Pick<Operation, 'definition' | 'root' | 'plan'> {
  readonly document: DocumentNode;
  readonly schema: GraphQLSchema;
}

/** Combinations of what @skip and @include say that are kept of one operation. */
const MOST_SELECTIONS = 16;

function readDocument(query: string, schema: GraphQLSchema): DocumentNode | Refused {
  try {
    const document = parse(query);
    const errors = validate(schema, document, RULES);
    if (errors.length > 0) return { errors: errors.map(requestError) };
    return isTooLarge(document) ? refused('The document is too large once its fragments are put in') : document;
  } catch (error) {
    if (error instanceof GraphQLError) return { errors: [requestError(error)] };
    // The stack is used up.
    if (error instanceof RangeError) return refused('The document is nested too deep');
    throw error;
  }
}

/** As a key of an object of JavaScript it is none. */
const noPrototypes: ValidationRule = (context) => ({
  Field(node) {
    if (node.alias?.value === '__proto__') {
      context.reportError(new GraphQLError('A field must not be renamed to __proto__', { nodes: [node] }));
    }
  },
});

const RULES = [...specifiedRules, noPrototypes];

function whyNone(operationName: string | undefined): string {
  return operationName === undefined
    ? 'The document has several operations, or none: operationName has to say which'
    : 'The document has no operation of the given operationName';
}

function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  return new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
}

/** The variables of @skip and @include. */
function conditionsOf(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    Directive({ name, arguments: given }) {
      const condition = given?.[0]?.value;
      if ((name.value === 'skip' || name.value === 'include') && condition?.kind === Kind.VARIABLE) {
        names.add(condition.name.value);
      }
    },
  });
  return [...names];
}

async function planOf(
  document: DocumentNode,
  definition: OperationDefinitionNode,
  makePlan: MakePlan,
): Promise<Operation['plan']> {
  if (!asksSubgraphs(definition.selectionSet, fragmentsOf(document))) return undefined;
  try {
    return await makePlan(print(toPlan(document)), definition.name?.value);
  } catch {
    return 'impossible';
  }
}

/** Type names of roots and introspection are answered from the schema. */
function asksSubgraphs(
  { selections }: SelectionSetNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): boolean {
  return selections.some((selection) => {
    if (selection.kind === Kind.FIELD) return !selection.name.value.startsWith('__');
    const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
    return fragment !== undefined && asksSubgraphs(fragment.selectionSet, fragments);
  });
}

/**
 * The document as it is planned. Introspection is answered from the schema, and names of types of
 * the type of an object, which is all that has to be fetched for them.
 */
function toPlan(document: DocumentNode): DocumentNode {
  return visit(document, {
    Field(node): FieldNode | undefined {
      const { name, alias, directives = [] } = node;
      if (name.value.startsWith('__')) return { kind: Kind.FIELD, name: nameOf('__typename'), directives };
      if (alias === undefined) return undefined;
      return { ...node, alias: nameOf(fetchedName(alias.value, name.value)) };
    },
  });
}

function nameOf(value: string): NameNode {
  return { kind: Kind.NAME, value };
}

function isIntrospection(name: string): boolean {
  return name === '__schema' || name === '__type';
}
