import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface Schema {
  readonly [keyword: string]: unknown;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
}

interface Field {
  readonly path: string;
  readonly schema: Schema;
}

const files = (await readdir(import.meta.dirname)).filter((name) => name.endsWith('.yaml'));
const fields = (await Promise.all(files.map(fieldsOf))).flat();

async function fieldsOf(file: string): Promise<Field[]> {
  const { spec } = parse(await readFile(new URL(file, import.meta.url), 'utf8'));
  return spec.versions.flatMap((version: { schema: { openAPIV3Schema: Schema } }) =>
    walk({ path: spec.names.kind, schema: version.schema.openAPIV3Schema }),
  );
}

/** The field itself and all below it, without what every Kubernetes object has. */
function walk({ path, schema }: Field): Field[] {
  const below = Object.entries(schema.properties ?? {})
    .filter(([name]) => !(path.indexOf('.') < 0 && ['apiVersion', 'kind', 'metadata'].includes(name)))
    .map(([name, property]) => ({ path: `${path}.${name}`, schema: property }));
  if (schema.items !== undefined) below.push({ path: `${path}[]`, schema: schema.items });
  if (schema.additionalProperties !== undefined) below.push({ path: `${path}{}`, schema: schema.additionalProperties });
  return [{ path, schema }, ...below.flatMap(walk)];
}

function fieldsWithout(isRight: (schema: Schema) => boolean): string[] {
  return fields.filter(({ schema }) => !isRight(schema)).map(({ path }) => path);
}

describe('every field', () => {
  it('is documented with a sentence', () => {
    expect(fieldsWithout(({ description }) => /^\S.+\.$/s.test(String(description)))).toEqual([]);
  });

  it('is bounded, so that its validation costs little', () => {
    const unbounded = fieldsWithout((schema) => {
      if (schema.type === 'string') return ['maxLength', 'enum', 'format'].some((keyword) => keyword in schema);
      if (schema.type === 'array') return 'maxItems' in schema;
      if (schema.properties === undefined && schema.type === 'object') return 'maxProperties' in schema;
      return schema.type !== 'integer' || 'minimum' in schema;
    });
    expect(unbounded).toEqual([]);
  });

  it('says how server-side apply merges it where it is a list', () => {
    expect(fieldsWithout((schema) => schema.type !== 'array' || 'x-kubernetes-list-type' in schema)).toEqual([]);
  });
});
