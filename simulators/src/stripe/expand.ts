import type { Store } from './store.ts';

/**
 * An answer with objects in the place of ids, at paths such as `payment_intent.latest_charge` or
 * `data.customer`. What leads nowhere stays as it is.
 */
export function expand(answer: unknown, paths: readonly string[], store: Store): unknown {
  return paths.reduce((expanded, path) => at(expanded, path.split('.'), store), answer);
}

function at(value: unknown, [name, ...rest]: readonly string[], store: Store): unknown {
  if (name === undefined) return typeof value === 'string' ? (store.findAny(value) ?? value) : value;
  if (Array.isArray(value)) return value.map((item: unknown) => at(item, [name, ...rest], store));
  const found: unknown = typeof value === 'string' ? store.findAny(value) : value;
  if (typeof found !== 'object' || found === null || !(name in found)) return value;
  const member: unknown = Object.entries(found).find(([key]) => key === name)?.[1];
  return { ...found, [name]: at(member, rest, store) };
}
