import { mean, median } from './statistics.ts';
import type { LoadResult } from './tasks.ts';

const ROUNDS = 5;

/** Something that is put under load several times. */
export interface Contestant {
  /** CPU time that it has used. */
  cpuMs(): Promise<number>;
  /** @param round counted from 0. */
  run(round: number): Promise<LoadResult>;
}

/** One round of load on one contestant. */
export interface Run {
  readonly load: LoadResult;
  /** What the contestant used meanwhile. */
  readonly cpuMs: number;
}

/** What several rounds of several contestants gave. */
export interface Runs<Name extends string> {
  of(name: Name): readonly Run[];
  /**
   * How busy each contestant and the load generator were, in percent of a core. Where the
   * contestant is well below 100 and the generator is not, the generator was measured; where both
   * are, the rest of the machine.
   */
  describeShares(): string;
}

/**
 * Five rounds, in each of them every contestant once, so that what else the machine does meets all
 * of them. Another one is the first in each round: who comes after a pause is slower.
 */
export async function alternate<Name extends string>(
  contestants: Readonly<Record<Name, Contestant>>,
): Promise<Runs<Name>> {
  const runs = new Map<Name, Run[]>();
  const names: Name[] = [];
  for (const name in contestants) names.push(name);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of startingAt(round % names.length, names)) {
      const run = await measure(contestants[name], round);
      runs.set(name, [...(runs.get(name) ?? []), run]);
    }
  }
  return {
    of: (name) => runs.get(name) ?? [],
    describeShares: () => [...runs].map(([name, list]) => `${name} ${sharesOf(list)}`).join(', '),
  };
}

function startingAt<T>(index: number, items: readonly T[]): T[] {
  return [...items.slice(index), ...items.slice(0, index)];
}

function sharesOf(runs: readonly Run[]): string {
  const own = mean(runs.map(({ load, cpuMs }) => cpuMs / load.elapsedMs));
  const generator = mean(runs.map(({ load }) => load.generatorCpuMs / load.elapsedMs));
  return `${(own * 100).toFixed(0)} % (generator ${(generator * 100).toFixed(0)} %)`;
}

/** One round of one contestant. */
export async function measure(contestant: Contestant, round = 0): Promise<Run> {
  const before = await contestant.cpuMs();
  const load = await contestant.run(round);
  return { load, cpuMs: (await contestant.cpuMs()) - before };
}

export function medianRate(runs: readonly Run[]): number {
  return median(runs.map(({ load }) => load.perSecond));
}

/** Of the rates of the same round, because these were measured at nearly the same time. */
export function medianRatio(runs: readonly Run[], peers: readonly Run[]): number {
  return median(runs.map(({ load }, round) => load.perSecond / (peers[round]?.load.perSecond ?? Number.NaN)));
}

/** Microseconds of the contestant's CPU time per request. */
export function medianCpu(runs: readonly Run[]): number {
  return median(runs.map(({ load, cpuMs }) => (cpuMs * 1000) / load.requests));
}

export function failuresOf(runs: readonly Run[]): number {
  return runs.reduce((sum, { load }) => sum + load.failures, 0);
}
