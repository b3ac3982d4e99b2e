import { createCacheControl } from './cache-control.ts';
import { type Fields, follow, type Taken } from './follow.ts';
import { isNeverAnswered, TRACE } from './never-passed.ts';
import { type HeaderRules, isOneOf } from './rules.ts';

/** What the answers of services to one request bring for the header of the answer to the client. */
export interface AnswerHeaders {
  /** Takes what the rules say of an answer. */
  take(service: string, fields: Readonly<Record<string, string | readonly string[] | undefined>>): void;
  /** @param isWhole whether all that was asked for was answered, without an error. */
  merged(isWhole: boolean): Fields;
}

/** Of one field that several answers add to. */
const LONGEST = 8192;
/** What may be in a header field of HTTP, in characters of one byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]+$/;
const CACHE_CONTROL = 'cache-control';
/** What an answer depends on besides what services get. */
const VARIES_BY = ['accept', 'authorization', 'graphql-cost'];

/** @param asked names of header fields that calls depend on, or `*`. */
export function createAnswerHeaders(
  { all, services }: HeaderRules,
  asked: readonly string[],
): () => AnswerHeaders | undefined {
  const byService = new Map([...services].map(([name, { response }]) => [name, [...all.response, ...response]]));
  const rules = [all.response, ...byService.values()].flat();
  const saysHowLong = rules.some((rule) =>
    rule.does === 'set' ? rule.name === CACHE_CONTROL : rule.does === 'pass' && isOneOf(rule.names, CACHE_CONTROL),
  );
  const vary = asked.includes('*') ? '*' : [...VARIES_BY, ...asked.filter((name) => !TRACE.has(name))].join(', ');
  return () => (rules.length === 0 ? undefined : collector());

  function collector(): AnswerHeaders {
    const merged = new Map<string, string>();
    const cache = createCacheControl();
    return {
      take(service, fields) {
        const taken = new Map<string, Taken>();
        follow(byService.get(service) ?? all.response, passable(fields), taken);
        if (saysHowLong) cache.add(taken.get(CACHE_CONTROL)?.value, fields['age']);
        taken.delete(CACHE_CONTROL);
        for (const [name, { value, merge }] of taken) {
          const before = merged.get(name);
          if (before === undefined || merge === 'last') merged.set(name, value);
          else if (merge === 'append' && before.length + value.length < LONGEST)
            merged.set(name, `${before}, ${value}`);
        }
      },
      merged(isWhole) {
        const fields = Object.fromEntries(merged);
        if (!saysHowLong) return fields;
        const value = cache.merged(isWhole);
        return { ...fields, [CACHE_CONTROL]: value, ...(value === 'no-store' ? {} : { vary }) };
      },
    };
  }
}

function passable(fields: Readonly<Record<string, string | readonly string[] | undefined>>): Fields {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      const text = typeof value === 'object' ? value.join(', ') : value;
      return text === undefined || isNeverAnswered(name) || !VALUE.test(text) ? [] : [[name, text]];
    }),
  );
}
