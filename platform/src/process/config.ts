import type { Static, TObject } from 'typebox';
import { Value } from 'typebox/value';

/** The environment a process was started with. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Thrown by {@link parseConfig}; its message lists every fault, not only the first. */
class ConfigError extends Error {
  constructor(faults: readonly string[]) {
    super(`Invalid configuration:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

/**
 * Reads the variables that the schema names from the environment, converts them from text, fills in
 * defaults and freezes the result. An empty variable counts as absent. Values are not repeated in
 * error messages: they may be secrets.
 *
 * @throws ConfigError naming every faulty variable.
 */
export function parseConfig<Schema extends TObject>(
  schema: Schema,
  environment: Environment,
): Readonly<Static<Schema>> {
  const given: Record<string, unknown> = {};
  for (const name of Object.keys(schema.properties)) {
    const value = environment[name];
    if (value !== undefined && value !== '') given[name] = value;
  }
  const candidate = Value.Convert(schema, Value.Default(schema, given));
  if (!Value.Check(schema, candidate)) {
    throw new ConfigError(Object.keys(schema.properties).flatMap((name) => faultsOf(schema, name, candidate)));
  }
  return Object.freeze(candidate);
}

/**
 * Variable by variable, because TypeBox reports no more than eight errors at once, of which a union
 * alone makes several.
 */
function faultsOf(schema: TObject, name: string, candidate: unknown): string[] {
  const property = schema.properties[name];
  const value = typeof candidate === 'object' && candidate !== null ? Reflect.get(candidate, name) : undefined;
  if (value === undefined) return schema.required?.includes(name) ? [`${name} is required`] : [];
  const messages = property === undefined ? [] : [...Value.Errors(property, value)].map(({ message }) => message);
  return [...new Set(messages)].map((message) => `${name} ${message}`);
}
