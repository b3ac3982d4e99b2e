import { type FieldDefinitionNode, type InputValueDefinitionNode, Kind, parse, type TypeNode } from 'graphql/index.js';
import type { TSchema } from 'typebox';

/** What a member is, as far as GraphQL and JSON Schema say it alike. */
interface Shape {
  /** It is always there, and not null. */
  readonly isRequired: boolean;
  readonly isList: boolean;
  /** Undefined: it has none that are known. */
  readonly members: Shapes | undefined;
}

type Shapes = Readonly<Record<string, Shape>>;

interface JsonSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** The members of an object of REST. */
export function shapesOfSchema(schema: TSchema): Shapes {
  const plain: JsonSchema = JSON.parse(JSON.stringify(schema));
  return membersOf(plain) ?? {};
}

function membersOf({ properties, required = [] }: JsonSchema): Shapes | undefined {
  if (properties === undefined) return undefined;
  const shapes = Object.entries(properties).map(([name, member]): [string, Shape] => {
    const choices = member.anyOf ?? [member];
    const [known = {}] = choices.filter(({ type }) => type !== 'null');
    const isNullable = choices.some(({ type }) => type === 'null');
    const isList = known.type === 'array';
    const members = membersOf(isList ? (known.items ?? {}) : known);
    return [name, { isRequired: required.includes(name) && !isNullable, isList, members }];
  });
  return Object.fromEntries(shapes);
}

/** The fields of a type or of an input. @throws Error where the SDL has none of the name. */
export function shapesOfType(sdl: string, name: string): Shapes {
  const shapes = shapesIn(sdl, fieldsOf(sdl, name) ?? []);
  if (Object.keys(shapes).length === 0) throw new Error(`There are no fields of ${name}`);
  return shapes;
}

/** The arguments of a field of Query. @throws Error where there is no such field. */
export function shapesOfArguments(sdl: string, field: string): Shapes {
  const asked = fieldsOf(sdl, 'Query')?.find(({ name }) => name.value === field);
  if (asked === undefined || !('arguments' in asked)) throw new Error(`There are no arguments of ${field}`);
  return shapesIn(sdl, asked.arguments ?? []);
}

type Field = FieldDefinitionNode | InputValueDefinitionNode;

function fieldsOf(sdl: string, name: string): readonly Field[] | undefined {
  for (const definition of parse(sdl).definitions) {
    // A subgraph extends the root types.
    const isObject =
      definition.kind === Kind.OBJECT_TYPE_DEFINITION ||
      definition.kind === Kind.OBJECT_TYPE_EXTENSION ||
      definition.kind === Kind.INPUT_OBJECT_TYPE_DEFINITION;
    if (isObject && definition.name.value === name) return definition.fields;
  }
  return undefined;
}

function shapesIn(sdl: string, fields: readonly Field[]): Shapes {
  return Object.fromEntries(fields.map(({ name, type }) => [name.value, shapeOf(sdl, type)]));
}

function shapeOf(sdl: string, type: TypeNode): Shape {
  if (type.kind === Kind.NON_NULL_TYPE) return { ...shapeOf(sdl, type.type), isRequired: true };
  if (type.kind === Kind.LIST_TYPE) return { ...shapeOf(sdl, type.type), isRequired: false, isList: true };
  const fields = fieldsOf(sdl, type.name.value);
  const members = fields === undefined ? undefined : shapesIn(sdl, fields);
  return { isRequired: false, isList: false, members };
}
