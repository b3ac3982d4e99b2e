import { WORDS } from './patterns.ts';

/** Of a schema: what the document says of it, and validation does not ask. */
const DOCUMENTED = 'x-documented';

/**
 * Rules of JSON Schema for the OpenAPI document alone. The domain checks them itself: what it refuses it says in words, at every door,
 * where a validator would show the pattern.
 */
export function documented(rules: object): { readonly [DOCUMENTED]: object } {
  return { [DOCUMENTED]: rules };
}

/** The document with those rules. */
export function completed<T extends object>(document: T): T {
  const whole: T = JSON.parse(JSON.stringify(document), (key, value) => {
    if (key === WORDS) return undefined;
    if (typeof value !== 'object' || value === null) return value;
    if (key === 'requestBody') return completedBody(value);
    const { [DOCUMENTED]: rules, ...schema } = value;
    return rules === undefined ? value : { ...schema, ...rules };
  });
  return whole;
}

/** Of the members of any body: the parser refuses a name that could change every object. */
export const memberRules = { not: { enum: ['__proto__'] } };

/** Of members that are ignored, too. */
export const ANY_MEMBER = { $ref: '#/components/schemas/Member' };
/** What every document names so. See {@link memberRules}. */
export const Member = {
  description: 'JSON without members named __proto__',
  ...documented({
    anyOf: [
      { type: ['string', 'number', 'boolean', 'null'] },
      { type: 'array', items: ANY_MEMBER },
      { type: 'object', propertyNames: memberRules, additionalProperties: ANY_MEMBER },
    ],
  }),
};

/**
 * Where a schema has a pattern without words, which validation would have to tell people of: JSON
 * pointers in it.
 */
export function wordlessPatterns(schema: unknown, at = ''): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const isWordless = 'pattern' in schema && typeof schema.pattern === 'string' && !(WORDS in schema);
  const below = Object.entries(schema).flatMap(([name, member]) =>
    name === DOCUMENTED ? [] : wordlessPatterns(member, `${at}/${name}`),
  );
  return isWordless ? [at, ...below] : below;
}

interface BodySchema {
  readonly type?: string;
  readonly additionalProperties?: boolean | object;
  readonly anyOf?: readonly BodySchema[];
}

interface RequestBody {
  readonly content: { readonly 'application/json': { readonly schema: BodySchema } };
}

/** A body that may be null may be left out. */
function completedBody({ content }: RequestBody): object {
  const { schema } = content['application/json'];
  const rules = isStrict(schema) ? {} : { propertyNames: memberRules, additionalProperties: ANY_MEMBER };
  return {
    required: schema.anyOf?.some(({ type }) => type === 'null') !== true,
    content: { 'application/json': { schema: { ...schema, ...rules } } },
  };
}

/** Whether members that are not named are refused, not ignored. */
function isStrict({ type, additionalProperties, anyOf = [] }: BodySchema): boolean {
  return type === 'null' || additionalProperties === false || (anyOf.length > 0 && anyOf.every(isStrict));
}
