import { type HeaderRule, isOneOf, type Merge } from './rules.ts';

/** Header fields by their names in lower case. */
export type Fields = Readonly<Record<string, string>>;

/** What a rule has taken. */
export interface Taken {
  readonly value: string;
  readonly merge: Merge;
}

/** Pure. Adds to `taken` what the rules take of `fields`, which has nothing that is never passed on. */
export function follow(rules: readonly HeaderRule[], fields: Fields, taken: Map<string, Taken>): void {
  for (const rule of rules) {
    if (rule.does === 'set') taken.set(rule.name, { value: rule.value, merge: 'last' });
    else if (rule.does === 'remove') {
      for (const name of taken.keys()) if (isOneOf(rule.names, name)) taken.delete(name);
    } else {
      const { names, as, merge } = rule;
      const found = names.areMany ? Object.keys(fields).filter((name) => isOneOf(names, name)) : [names.text];
      for (const name of found) {
        const value = fields[name];
        if (value !== undefined) taken.set(as ?? name, { value, merge });
      }
    }
  }
}
