import { hash } from 'node:crypto';
import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  isInputType,
  Kind,
  parse,
  print,
  separateOperations,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql/index.js';

/** An operation as it is kept: without what its client asked about. */
export interface StoredOperation {
  /** SHA-256 of the document. */
  readonly hash: string;
  readonly name: string | null;
  /** The operation and its fragments. Numbers are 0 and texts are empty; values of enums stay. */
  readonly document: string;
  /**
   * What of the schema it uses: `Type.field`, `Type.field(argument:)`, `Input.field`, `Enum.VALUE`, and
   * the types of its variables.
   */
  readonly coordinates: readonly string[];
}

/**
 * Pure. The operation of a document that was executed.
 *
 * @param document valid against the schema.
 * @returns undefined where the document has no such operation.
 */
export function storedOperation(
  document: string,
  operationName: string | undefined,
  schema: GraphQLSchema,
): StoredOperation | undefined {
  const operations = separateOperations(parse(document, { noLocation: true }));
  const [first] = Object.keys(operations);
  const operation = operations[operationName ?? first ?? ''];
  if (operation === undefined) return undefined;
  const text = print(withoutLiterals(operation));
  return {
    hash: hash('sha256', text, 'hex'),
    name: operationName ?? (first === '' ? null : (first ?? null)),
    document: text,
    coordinates: coordinatesOf(operation, schema),
  };
}

function withoutLiterals(document: DocumentNode): DocumentNode {
  return visit(document, {
    StringValue: (node) => ({ ...node, value: '', block: false }),
    IntValue: (node) => ({ ...node, value: '0' }),
    FloatValue: (node) => ({ ...node, value: '0' }),
  });
}

function coordinatesOf(document: DocumentNode, schema: GraphQLSchema): readonly string[] {
  const used = new Set<string>();
  const types = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(types, {
      Field() {
        const [parent, field] = [types.getParentType(), types.getFieldDef()];
        if (parent && field && !field.name.startsWith('__')) used.add(`${parent.name}.${field.name}`);
      },
      Argument() {
        const [parent, field, argument] = [types.getParentType(), types.getFieldDef(), types.getArgument()];
        const isOfField = (types.getDirective() ?? null) === null;
        if (isOfField && parent && field && argument) used.add(`${parent.name}.${field.name}(${argument.name}:)`);
      },
      ObjectField({ name }) {
        const input = getNamedType(types.getParentInputType());
        if (input) used.add(`${input.name}.${name.value}`);
      },
      EnumValue({ value }) {
        const type = getNamedType(types.getInputType());
        if (type) used.add(`${type.name}.${value}`);
      },
      VariableDefinition({ type }) {
        let named = type;
        while (named.kind !== Kind.NAMED_TYPE) named = named.type;
        const input = typeFromAST(schema, named);
        if (isInputType(input) && input) used.add(named.name.value);
      },
    }),
  );
  return [...used].toSorted();
}
