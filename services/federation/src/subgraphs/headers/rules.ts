import { serviceNameFault } from '@rollcall/platform/service-address.ts';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { isNeverAnswered, isNeverAsked } from './never-passed.ts';

/** What a header field of an answer becomes where several answers have it. */
export type Merge = 'first' | 'last' | 'append';

/** What becomes of header fields. Rules are followed in their order, and the last one has the last word. */
export type HeaderRule =
  | { readonly does: 'pass'; readonly names: Names; readonly as: string | undefined; readonly merge: Merge }
  | { readonly does: 'set'; readonly name: string; readonly value: string }
  | { readonly does: 'remove'; readonly names: Names };

/** A name in lower case, or all that begin with a text. */
export interface Names {
  readonly text: string;
  readonly areMany: boolean;
}

interface Directions {
  /** From a request of a client to calls of services. */
  readonly request: readonly HeaderRule[];
  /** From answers of services to the answer to a client. */
  readonly response: readonly HeaderRule[];
}

/** Rules for calls and answers of all services, and further ones for each. */
export interface HeaderRules {
  readonly all: Directions;
  readonly services: ReadonlyMap<string, Directions>;
}

const strict = { additionalProperties: false } as const;
const MOST_RULES = 50;
const Name = Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' });
const Pattern = Type.String({ pattern: String.raw`^[A-Za-z0-9-]{1,64}\*?$` });
const Rule = Type.Object(
  {
    pass: Type.Optional(Pattern),
    as: Type.Optional(Name),
    merge: Type.Optional(Type.Enum(['first', 'last', 'append'])),
    set: Type.Optional(Name),
    to: Type.Optional(Type.String({ maxLength: 1024, pattern: '^[!-~](?:[ -~]*[!-~])?$' })),
    remove: Type.Optional(Pattern),
  },
  strict,
);
type Rule = Static<typeof Rule>;
const Rules = Type.Optional(Type.Array(Rule, { maxItems: MOST_RULES }));
const Both = Type.Object({ request: Rules, response: Rules }, strict);
const Setting = Type.Object(
  { all: Type.Optional(Both), services: Type.Optional(Type.Record(Type.String(), Both)) },
  strict,
);

/** @param given as JSON has it. @throws Error naming what is wrong with it. */
export function readHeaderRules(given: unknown): HeaderRules {
  if (!Value.Check(Setting, given))
    throw notValid(
      Value.Errors(Setting, given).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`),
    );
  const { all = {}, services = {} } = given;
  const faults = [
    ...faultsOf(all, 'all'),
    ...Object.entries(services).flatMap(([service, both]) => {
      const fault = serviceNameFault(service);
      return [
        ...(fault === undefined ? [] : [`services/${service}: the name ${fault}`]),
        ...faultsOf(both, `services/${service}`),
      ];
    }),
  ];
  if (faults.length > 0) throw notValid(faults);
  return {
    all: directionsOf(all),
    services: new Map(Object.entries(services).map(([service, both]) => [service, directionsOf(both)])),
  };
}

function notValid(faults: readonly string[]): Error {
  return new Error(`The rules of header fields are not valid: ${[...new Set(faults)].join('; ')}`);
}

function faultsOf({ request = [], response = [] }: Static<typeof Both>, where: string): readonly string[] {
  const faults = (rules: readonly Rule[], direction: keyof Directions) =>
    rules.flatMap((rule, index) => {
      const fault = faultOf(rule, direction);
      return fault === undefined ? [] : [`${where}/${direction}/${index} ${fault}`];
    });
  return [...faults(request, 'request'), ...faults(response, 'response')];
}

/** What no schema says of a rule. */
function faultOf({ pass, as, merge, set, to, remove }: Rule, direction: keyof Directions): string | undefined {
  if ([pass, set, remove].filter((each) => each !== undefined).length !== 1)
    return 'must have one of pass, set and remove';
  if ((set === undefined) !== (to === undefined)) return 'must have set and to together';
  if (pass === undefined && (as !== undefined || merge !== undefined)) return 'has as or merge without pass';
  if (as !== undefined && pass?.endsWith('*') === true) return 'gives many one name';
  if (merge !== undefined && direction === 'request') return 'has merge, which is for answers';
  const isNever = direction === 'request' ? isNeverAsked : isNeverAnswered;
  const names = [pass, as, set].flatMap((name) => (name === undefined ? [] : [name.replace('*', '').toLowerCase()]));
  const never = names.find(isNever);
  if (never !== undefined) return `has ${never}, which is never passed on`;
  const isCache = direction === 'response' && names.includes('cache-control');
  return isCache && (as !== undefined || merge !== undefined)
    ? 'has cache-control, which has one name and one way to be merged'
    : undefined;
}

function directionsOf({ request = [], response = [] }: Static<typeof Both>): Directions {
  return { request: request.flatMap(ruleOf), response: response.flatMap(ruleOf) };
}

function ruleOf({ pass, as, merge = 'last', set, to = '', remove }: Rule): readonly HeaderRule[] {
  if (pass !== undefined) return [{ does: 'pass', names: namesOf(pass), as: as?.toLowerCase(), merge }];
  if (set !== undefined) return [{ does: 'set', name: set.toLowerCase(), value: to }];
  return remove === undefined ? [] : [{ does: 'remove', names: namesOf(remove) }];
}

function namesOf(pattern: string): Names {
  return { text: pattern.replace('*', '').toLowerCase(), areMany: pattern.endsWith('*') };
}

/** Pure. */
export function isOneOf({ text, areMany }: Names, name: string): boolean {
  return areMany ? name.startsWith(text) : name === text;
}
