import { errorMessage } from '@rollcall/platform/errors.ts';
import { storableText } from '@rollcall/platform/outbound/foreign-text.ts';
import { composeServices } from '@theguild/federation-composition';
import { type DocumentNode, parse } from 'graphql/index.js';
import { mendFieldTypes } from './field-types.ts';
import { lostRules } from './lost-rules.ts';

/** A subgraph as composition takes it. */
export interface SubgraphSource {
  readonly name: string;
  /** Of its GraphQL. */
  readonly url: string;
  readonly sdl: string;
}

/** Why subgraphs do not compose. */
export interface CompositionError {
  /** Such as `INVALID_GRAPHQL`, or a code of the composition rules of Federation. */
  readonly code: string;
  readonly message: string;
}

export type Composition =
  | { readonly supergraph: string; readonly errors?: never }
  | { readonly supergraph?: never; readonly errors: readonly CompositionError[] };

/** Of a set that took more time or memory than there is; see `createComposer`. */
export const LIMIT_CODE = 'COMPOSITION_LIMIT';

/** More are of no use to people, and each is stored. */
const MOST_ERRORS = 50;
const LONGEST_MESSAGE = 1000;
/** It reports paths that planners find all the same, and takes more time and memory than all else. */
const UNSURE_RULE = 'SatisfiabilityRule';

/**
 * Pure. Composes a supergraph of subgraphs of Federation 1 and 2. Whether each field can be reached is
 * not asked here: the planner has the last word.
 *
 * @param subgraphs each with a name of its own, in any order.
 */
export function compose(subgraphs: readonly SubgraphSource[]): Composition {
  const parsed = subgraphs.map(parseSource);
  const faults = parsed.flatMap((each) => ('fault' in each ? [each.fault] : []));
  if (faults.length > 0) return { errors: storableErrors(faults) };
  const services = parsed.flatMap((each) => ('typeDefs' in each ? [each] : []));
  return composeParsed(services);
}

type Parsed =
  | { readonly fault: CompositionError }
  | { readonly name: string; readonly url: string; readonly typeDefs: DocumentNode };

function parseSource({ name, url, sdl }: SubgraphSource): Parsed {
  if (!/[A-Za-z0-9]/.test(name)) return { fault: invalid(name, 'its name has neither a letter nor a digit of ASCII') };
  try {
    return { name, url, typeDefs: parse(sdl, { noLocation: true }) };
  } catch (error) {
    return { fault: invalid(name, error instanceof RangeError ? 'it is nested too deeply' : errorMessage(error)) };
  }
}

function invalid(name: string, reason: string): CompositionError {
  return { code: 'INVALID_GRAPHQL', message: `[${name}] ${reason}` };
}

function composeParsed(services: readonly { name: string; url: string; typeDefs: DocumentNode }[]): Composition {
  try {
    const lost = services.flatMap(({ name, typeDefs }) => lostRules(name, typeDefs));
    if (lost.length > 0) return { errors: storableErrors(lost) };
    const composed = composeServices([...services], { disableValidationRules: [UNSURE_RULE] });
    if (composed.errors === undefined) return { supergraph: mendFieldTypes(composed.supergraphSdl, services) };
    const told = composed.errors.map(({ message, extensions }) => ({ code: codeOf(extensions), message }));
    return { errors: storableErrors(told) };
  } catch (error) {
    // The library throws on some documents that no rule of its own has refused before.
    return { errors: storableErrors([{ code: 'COMPOSITION_FAILED', message: errorMessage(error) }]) };
  }
}

function codeOf({ code }: Readonly<Record<string, unknown>>): string {
  return typeof code === 'string' ? code : 'COMPOSITION_FAILED';
}

/** Pure. Errors as they can be stored. */
export function storableErrors(errors: readonly CompositionError[]): readonly CompositionError[] {
  return errors.slice(0, MOST_ERRORS).map(({ code, message }) => ({
    code: storableText(code.slice(0, LONGEST_MESSAGE)),
    message: storableText(message.slice(0, LONGEST_MESSAGE)),
  }));
}
