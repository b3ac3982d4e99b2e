import { type AnswerHeaders, createAnswerHeaders } from './answer-headers.ts';
import { type Fields, follow, type Taken } from './follow.ts';
import { isNeverAsked, TRACE } from './never-passed.ts';
import { type HeaderRules, isOneOf } from './rules.ts';

/** Which header fields go from clients to services, and back (docs/decisions/0508). */
export interface PassedHeaders {
  /** Pure. Of those of a request, all that some service may get. */
  readonly carried: (given: Readonly<Record<string, unknown>>) => Fields;
  /** Pure. What a service gets. @param carried of the request. */
  readonly forService: (service: string, carried: Fields) => Fields;
  /** For the answers to one request. Undefined: clients get nothing of services. */
  readonly collect: () => AnswerHeaders | undefined;
}

/** Every service gets these unless a rule says otherwise. */
const ALWAYS = ['accept-language', ...TRACE];

export function createPassedHeaders(rules: HeaderRules): PassedHeaders {
  const { all, services } = rules;
  const byService = new Map([...services].map(([name, { request }]) => [name, [...all.request, ...request]]));
  const requestRules = [all.request, ...byService.values()].flat();
  const passed = requestRules.flatMap((rule) => (rule.does === 'pass' ? [rule.names] : []));
  const patterns = passed.filter(({ areMany }) => areMany);
  const names = [...new Set([...ALWAYS, ...passed.filter(({ areMany }) => !areMany).map(({ text }) => text)])];

  return {
    carried(given) {
      const carried: Record<string, string> = {};
      for (const name of names) {
        const value = given[name];
        if (typeof value === 'string') carried[name] = value;
      }
      if (patterns.length === 0) return carried;
      for (const [name, value] of Object.entries(given)) {
        const isPassed = patterns.some((pattern) => isOneOf(pattern, name)) && !isNeverAsked(name);
        if (isPassed && typeof value === 'string') carried[name] = value;
      }
      return carried;
    },
    forService(service, carried) {
      if (requestRules.length === 0) return carried;
      const taken = new Map<string, Taken>();
      for (const name of ALWAYS) {
        const value = carried[name];
        if (value !== undefined) taken.set(name, { value, merge: 'last' });
      }
      follow(byService.get(service) ?? all.request, carried, taken);
      return Object.fromEntries([...taken].map(([name, { value }]) => [name, value]));
    },
    collect: createAnswerHeaders(rules, patterns.length === 0 ? names : ['*']),
  };
}

/** Pure. Header fields without those by which it is known in which trace they are. */
export function untraced(fields: Fields): readonly (readonly [string, string])[] {
  return Object.entries(fields).filter(([name]) => !TRACE.has(name));
}
