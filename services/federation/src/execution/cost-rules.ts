import {
  type ConstDirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  isTypeDefinitionNode,
  Kind,
} from 'graphql/index.js';
import { argumentsOf } from './join-directives.ts';
import { isObject, type JsonObject } from './types.ts';

/** `@listSize` of a field. */
export interface ListSize {
  /** Items where no argument says how many. */
  readonly assumedSize: number | undefined;
  /** Arguments that say how many. */
  readonly slicingArguments: readonly string[];
  /** Fields of the field's type that have so many items, instead of the field itself. */
  readonly sizedFields: readonly string[];
  /** Whether just one of the arguments has to be there. */
  readonly requiresOneArgument: boolean;
}

/** What subgraphs say of costs (specs.apollo.dev/cost, after IBM's directives). */
export interface CostRules {
  /** `@cost` by coordinate: `Type`, `Type.field`, `Type.field(argument:)`. */
  readonly weights: ReadonlyMap<string, number>;
  /** By coordinate of a field. */
  readonly listSizes: ReadonlyMap<string, ListSize>;
}

/** Pure. Reads them from a supergraph. */
export function readCostRules(document: DocumentNode): CostRules {
  const weights = new Map<string, number>();
  const listSizes = new Map<string, ListSize>();
  const link = linkOf(document);
  if (link === undefined) return { weights, listSizes };
  const [cost, listSize] = [importedName(link, 'cost'), importedName(link, 'listSize')];
  const weigh = (coordinate: string, directives: readonly ConstDirectiveNode[] | undefined): void => {
    const weight = argumentsOf(directives, cost)?.['weight'];
    if (typeof weight === 'number') weights.set(coordinate, weight);
  };
  const readField = (coordinate: string, field: FieldDefinitionNode): void => {
    const said = argumentsOf(field.directives, listSize);
    if (said !== undefined) listSizes.set(coordinate, listSizeOf(said));
    for (const { name, directives } of field.arguments ?? []) weigh(`${coordinate}(${name.value}:)`, directives);
  };
  for (const definition of document.definitions) {
    if (!isTypeDefinitionNode(definition)) continue;
    weigh(definition.name.value, definition.directives);
    if (!('fields' in definition)) continue;
    for (const field of definition.fields ?? []) {
      const coordinate = `${definition.name.value}.${field.name.value}`;
      weigh(coordinate, field.directives);
      if (field.kind === Kind.FIELD_DEFINITION) readField(coordinate, field);
    }
  }
  return { weights, listSizes };
}

function listSizeOf({ assumedSize, requireOneSlicingArgument, ...names }: JsonObject): ListSize {
  const slicingArguments = textsIn(names['slicingArguments']);
  return {
    assumedSize: typeof assumedSize === 'number' ? assumedSize : undefined,
    slicingArguments,
    sizedFields: textsIn(names['sizedFields']),
    requiresOneArgument: slicingArguments.length > 0 && requireOneSlicingArgument !== false,
  };
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

/** The arguments of `@link` by which the supergraph has the directives; undefined: it has none. */
function linkOf({ definitions }: DocumentNode): JsonObject | undefined {
  return definitions
    .flatMap((definition) => (definition.kind === Kind.SCHEMA_DEFINITION ? (definition.directives ?? []) : []))
    .map((directive) => argumentsOf([directive], 'link'))
    .find((said) => String(said?.['url']).startsWith('https://specs.apollo.dev/cost/'));
}

/** What a directive is called in the supergraph. */
function importedName({ import: imports }: JsonObject, name: string): string {
  const found = (Array.isArray(imports) ? imports : []).find(
    (each: unknown) => isObject(each) && each['name'] === `@${name}`,
  );
  return isObject(found) && typeof found['as'] === 'string' ? found['as'].slice(1) : name;
}
