import { readdir, readFile, writeFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { parse } from 'yaml';

const crdsFolder = new URL('../crds/', import.meta.url);
const typesFile = new URL('types.gen.ts', crdsFolder);

/**
 * The keywords of a structural schema that its type depends on; bounds, formats and CEL rules do
 * not count.
 */
interface StructuralSchema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: 'array' | 'boolean' | 'integer' | 'number' | 'object' | 'string';
  readonly enum?: string[];
  readonly default?: unknown;
  readonly items?: StructuralSchema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

interface CustomResourceDefinition {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: StructuralSchema };
    }[];
  };
}

/**
 * Enumerations whose values programs go through, by the name of their type: the name of the list.
 */
const listNames: Readonly<Record<string, string>> = { DeliveryPhase: 'deliveryPhases' };

/** The declarations so far: the JSON Schema of each, by the name of the type. */
type Declarations = Map<string, JSONSchema>;

const banner = `// Generated from crds/*.yaml by tools/crd-types.ts (npm run generate). Do not edit.
//
// The types say what the API server returns: a field of spec with a default is always there.
// Instants are RFC 3339 strings. A writer leaves status out: the API server ignores it but on the
// status subresource.
import type { ObjectMeta } from './object-meta.ts';
`;

const compileOptions = {
  additionalProperties: false,
  bannerComment: '',
  unknownAny: true,
  style: { singleQuote: true, printWidth: 120, trailingComma: 'all' },
} as const;

/**
 * The TypeScript for the custom resources in `crds/*.yaml`: one interface for each kind, and one
 * type for each schema with a `title`, and lists of the values that programs go through. Throws
 * where two schemas of the same title differ.
 */
export async function generateCrdTypes(): Promise<string> {
  const declarations: Declarations = new Map();
  const files = (await readdir(crdsFolder)).filter((name) => name.endsWith('.yaml')).sort();
  for (const file of files) declareKind(declarations, parse(await readFile(new URL(file, crdsFolder), 'utf8')));
  const blocks: string[] = [];
  for (const [name, schema] of declarations) {
    blocks.push(await compile(schema, name, compileOptions));
    const list = listNames[name];
    if (list !== undefined) blocks.push(listOf(list, name, schema));
  }
  return [banner, ...blocks].join('\n');
}

function listOf(list: string, name: string, { enum: values = [] }: JSONSchema): string {
  const lines = values.flatMap((value) => (typeof value === 'string' ? [`  '${value}',\n`] : []));
  return `/**\n * Every ${name}.\n */\nexport const ${list} = [\n${lines.join('')}] as const satisfies readonly ${name}[];\n`;
}

function declareKind(declarations: Declarations, crd: CustomResourceDefinition): void {
  const { group, names, versions } = crd.spec;
  for (const version of versions) {
    const root = version.schema.openAPIV3Schema;
    const type = typeOf(declarations, root);
    declare(declarations, names.kind, {
      ...type,
      required: ['apiVersion', 'kind', 'metadata', ...(root.required ?? [])],
      properties: {
        ...type.properties,
        apiVersion: { type: 'string', enum: [`${group}/${version.name}`] },
        kind: { type: 'string', enum: [names.kind] },
        metadata: { tsType: 'ObjectMeta' },
      },
    });
  }
}

function declare(declarations: Declarations, name: string, schema: JSONSchema): void {
  const known = declarations.get(name);
  if (known === undefined) declarations.set(name, schema);
  else if (!isDeepStrictEqual(shape(known), shape(schema)))
    throw new Error(`Two different schemas are titled ${name}.`);
}

function shape(schema: JSONSchema): object {
  return { ...schema, description: undefined };
}

/** What a schema is written as where it is used: a reference where it has a title, else itself. */
function usage(declarations: Declarations, schema: StructuralSchema): JSONSchema {
  const type = typeOf(declarations, schema);
  if (schema.title === undefined) return type;
  declare(declarations, schema.title, type);
  return { ...described(schema), tsType: schema.title };
}

function typeOf(declarations: Declarations, schema: StructuralSchema): JSONSchema {
  const { type, properties, additionalProperties, items } = schema;
  if (schema['x-kubernetes-int-or-string'] === true) return { ...described(schema), tsType: 'number | string' };
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) {
    return { ...described(schema), tsType: 'Record<string, unknown>' };
  }
  return {
    ...described(schema),
    ...(type !== undefined && { type }),
    ...(schema.enum !== undefined && { enum: schema.enum }),
    ...(items !== undefined && { items: usage(declarations, items) }),
    ...(additionalProperties !== undefined && { additionalProperties: usage(declarations, additionalProperties) }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, property]) => [name, usage(declarations, property)]),
      ),
      required: Object.keys(properties).filter((name) => isAlwaysPresent(schema, name)),
    }),
  };
}

function isAlwaysPresent({ required, properties }: StructuralSchema, name: string): boolean {
  return required?.includes(name) === true || properties?.[name]?.default !== undefined;
}

function described({ description }: StructuralSchema): JSONSchema {
  return description === undefined ? {} : { description: wrap(description) };
}

/** Breaks a text into lines that fit a doc comment inside an interface. */
function wrap(text: string): string {
  const maxLength = 110;
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > maxLength) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines.join('\n');
}

if (import.meta.main) await writeFile(typesFile, await generateCrdTypes());
