import { hasScope } from '@rollcall/platform/http/scopes.ts';
import {
  type ConstDirectiveNode,
  type DocumentNode,
  isTypeDefinitionNode,
  valueFromASTUntyped,
} from 'graphql/index.js';

/** Who calls, as far as rules ask. */
export interface Caller {
  readonly scopes: ReadonlySet<string>;
  /** Absent: it is not told. */
  readonly subject?: string;
}

/** Of each group the caller needs one member, with all of its scopes: a caller without scopes has `[]`. */
export type AccessRule = readonly (readonly (readonly string[])[])[];

/** What is for some callers alone, by coordinate: `Type`, `Type.field`. */
export type AccessRules = ReadonlyMap<string, AccessRule>;

/**
 * Pure. Reads `@authenticated`, `@requiresScopes` and `@policy` of a supergraph. Composition has put
 * together there what subgraphs say, and what the types of an interface say.
 */
export function readAccessRules({ definitions }: DocumentNode): AccessRules {
  const rules = new Map<string, AccessRule>();
  const add = (coordinate: string, directives: readonly ConstDirectiveNode[] | undefined): void => {
    const rule = directives?.flatMap(groupOf) ?? [];
    if (rule.length > 0) rules.set(coordinate, rule);
  };
  for (const definition of definitions) {
    if (!isTypeDefinitionNode(definition)) continue;
    const type = definition.name.value;
    add(type, definition.directives);
    if (!('fields' in definition)) continue;
    for (const field of definition.fields ?? []) add(`${type}.${field.name.value}`, field.directives);
  }
  return rules;
}

/** Policies are names of scopes (docs/decisions/0478). */
const ARGUMENTS: Readonly<Record<string, string>> = { requiresScopes: 'scopes', policy: 'policies' };

function groupOf(directive: ConstDirectiveNode): AccessRule {
  const name = directive.name.value;
  if (name === 'authenticated') return [[[]]];
  const argument = ARGUMENTS[name];
  if (argument === undefined) return [];
  const given = directive.arguments?.find((each) => each.name.value === argument);
  return [given === undefined ? [] : membersOf(valueFromASTUntyped(given.value))];
}

/** What cannot be read nobody has. */
function membersOf(value: unknown): AccessRule[number] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((member: unknown) => (Array.isArray(member) ? [member.map(String)] : []));
}

/** Pure. Whether a caller has what a rule asks for. @param caller undefined: nobody knows who calls. */
export function meets(caller: Caller | undefined, rule: AccessRule): boolean {
  if (caller === undefined) return rule.length === 0;
  return rule.every((group) => group.some((scopes) => scopes.every((scope) => hasScope(caller, scope))));
}
