/** A question that values answer, with the values of each answer by its name. */
export type Dimension<T> = Readonly<Record<string, T>>;

/** One answer for each dimension, by their names. */
export type Combination = Readonly<Record<string, string>>;

/**
 * Combinations in which every two answers of different dimensions meet at least once: faults that
 * take three are rare, and all combinations would be thousands.
 */
export function pairwise(dimensions: Readonly<Record<string, Dimension<unknown>>>): Combination[] {
  const names = Object.keys(dimensions);
  const answers = new Map(names.map((name) => [name, Object.keys(dimensions[name] ?? {})]));
  const missing = new Set<string>();
  for (const [first, second] of pairsOf(names)) {
    for (const a of answers.get(first) ?? []) {
      for (const b of answers.get(second) ?? []) missing.add(pairKey({ [first]: a, [second]: b }, first, second));
    }
  }
  const combinations: Combination[] = [];
  while (missing.size > 0) {
    const combination = next(names, answers, missing);
    for (const [first, second] of pairsOf(names)) missing.delete(pairKey(combination, first, second));
    combinations.push(combination);
  }
  return combinations;
}

/**
 * Begins with a pair that is missing and adds, dimension by dimension, the answer that makes up for
 * the most others.
 */
function next(
  names: readonly string[],
  answers: ReadonlyMap<string, readonly string[]>,
  missing: ReadonlySet<string>,
): Combination {
  const [seed = '{}'] = missing;
  const chosen: Record<string, string> = JSON.parse(seed) as Record<string, string>;
  for (const name of names) {
    if (name in chosen) continue;
    const others = Object.keys(chosen);
    const scores = (answers.get(name) ?? []).map((answer) => {
      const candidate = { ...chosen, [name]: answer };
      const gained = others.filter((other) => missing.has(pairKey(candidate, other, name))).length;
      return { answer, gained };
    });
    const best = scores.reduce((a, b) => (b.gained > a.gained ? b : a));
    chosen[name] = best.answer;
  }
  return chosen;
}

function pairsOf(names: readonly string[]): [string, string][] {
  return names.flatMap((first, index) => names.slice(index + 1).map((second): [string, string] => [first, second]));
}

function pairKey(combination: Combination, first: string, second: string): string {
  const [a, b] = first < second ? [first, second] : [second, first];
  return JSON.stringify({ [a]: combination[a], [b]: combination[b] });
}
