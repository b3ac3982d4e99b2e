import { parseDateTime } from '@rollcall/platform/date-time.ts';
import { parseEmailAddress } from '@rollcall/platform/mail-address.ts';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';

/** What is wrong with a part of a request: a JSON pointer (RFC 6901) and words. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

/** JSON Schema 2020-12 of an object. */
export type VariablesSchema = Readonly<Record<string, unknown>>;

/**
 * Expressions that take for ever, and references that lead anywhere: a schema comes from outside, and
 * is checked against values from outside. Items that are compared with all others take for ever, too.
 */
const WITHOUT = [
  'pattern',
  'patternProperties',
  'uniqueItems',
  '$ref',
  '$dynamicRef',
  '$id',
  '$anchor',
  '$dynamicAnchor',
];

/** The service gives it to marketing mails: where their recipients opt out. */
export const UNSUBSCRIBE_URL = 'unsubscribeUrl';
/** In characters. */
const LONGEST_SCHEMA = 65_536;
/** In characters of JSON: a validator may find a fault in each of them. */
export const LONGEST_VARIABLES = 65_536;
const MOST_FAULTS = 100;

const metaSchema = new Ajv2020({ allErrors: true, strict: false });

function createValidators(): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    meta: false,
    validateSchema: false,
    strictTypes: false,
    formats: {
      email: (text: string) => 'value' in parseEmailAddress(text),
      // So that no template makes a link of a script.
      uri: (text: string) => /^https?:\/\//i.test(text) && URL.canParse(text),
      date: (text: string) => parseDateTime(`${text}T00:00:00Z`) !== undefined,
      'date-time': (text: string) => parseDateTime(text) !== undefined,
    },
  });
  for (const keyword of WITHOUT) ajv.removeKeyword(keyword);
  return ajv;
}

const validators = createValidators();

/** Pure. What is wrong with a schema of variables; nothing where it can be used. */
export function schemaFaults(schema: VariablesSchema): readonly Fault[] {
  try {
    if (JSON.stringify(schema).length > LONGEST_SCHEMA)
      return [{ path: '', message: `must have at most ${LONGEST_SCHEMA} characters as JSON` }];
    if (metaSchema.validateSchema(schema) !== true) {
      return (metaSchema.errors ?? []).map(({ instancePath, message }) => ({
        path: instancePath,
        message: `${message}`,
      }));
    }
    if (schema['type'] !== 'object') return [{ path: '/type', message: "must be 'object'" }];
    if (declaredVariables(schema).has(UNSUBSCRIBE_URL))
      return [{ path: `/properties/${UNSUBSCRIBE_URL}`, message: 'is reserved: the service gives it' }];
    compile(schema);
    return [];
  } catch (error) {
    return [{ path: '', message: error instanceof Error ? error.message : 'cannot be used' }];
  }
}

/** The names of the variables that a schema declares. */
export function declaredVariables(schema: VariablesSchema): ReadonlySet<string> {
  const { properties } = schema;
  return new Set(typeof properties === 'object' && properties !== null ? Object.keys(properties) : []);
}

/** Pure. What is wrong with values, by a schema that has no faults: all at once. */
export function valueFaults(schema: VariablesSchema, values: Readonly<Record<string, unknown>>): readonly Fault[] {
  if (Object.hasOwn(values, UNSUBSCRIBE_URL))
    return [{ path: `/${UNSUBSCRIBE_URL}`, message: 'is reserved: the service gives it' }];
  const validate = compile(schema);
  return validate(values) ? [] : (validate.errors ?? []).slice(0, MOST_FAULTS).map(faultOf);
}

/** By the schema itself: both are forgotten together. */
const compiled = new WeakMap<VariablesSchema, ValidateFunction>();

function compile(schema: VariablesSchema): ValidateFunction {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  try {
    const validate = validators.compile(schema);
    compiled.set(schema, validate);
    return validate;
  } finally {
    // It would keep every schema that it has ever seen.
    validators.removeSchema(schema);
  }
}

function faultOf({ keyword, instancePath, params, message }: ErrorObject): Fault {
  if (keyword === 'required') return { path: `${instancePath}/${params['missingProperty']}`, message: 'is missing' };
  if (keyword === 'additionalProperties') {
    return { path: `${instancePath}/${params['additionalProperty']}`, message: 'is not a variable of the template' };
  }
  return { path: instancePath, message: message ?? keyword };
}
