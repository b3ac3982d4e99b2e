import { sleep } from '@rollcall/platform/retry.ts';
import { mean } from '../load/statistics.ts';
import { atMost, figure, type Row } from '../report.ts';
import type { RollcallSubject, Subject } from './stage.ts';

const SAMPLE_MS = 5000;

/** How long a soak is. */
export const SOAK_MINUTES = 10;

/** What a process used until then. */
interface CpuSample {
  readonly atMs: number;
  readonly cpuMs: number;
}

interface Sample extends CpuSample {
  readonly rssMiB: number;
}

/** Samples a process for so long, but for the last interval. */
export function sample(subject: RollcallSubject, durationMs: number): Promise<Sample[]> {
  return repeat(durationMs, async () => ({ ...(await cpuOf(subject)), rssMiB: await subject.rssMiB() }));
}

/** Samples the CPU time of a process for so long, but for the last interval. */
export function sampleCpu(subject: Subject, durationMs: number): Promise<CpuSample[]> {
  return repeat(durationMs, () => cpuOf(subject));
}

async function cpuOf(subject: Subject): Promise<CpuSample> {
  return { cpuMs: await subject.cpuMs(), atMs: performance.now() };
}

async function repeat<T>(durationMs: number, take: () => Promise<T>): Promise<T[]> {
  const samples: T[] = [];
  const endMs = performance.now() + durationMs - SAMPLE_MS;
  do {
    samples.push(await take());
    await sleep(SAMPLE_MS);
  } while (performance.now() < endMs);
  return samples;
}

/**
 * Whether memory and CPU stay what they are: the second half of the samples against the first.
 *
 * @param beside a process that keeps nothing, sampled at the same time: as much as its CPU grows,
 * the machine has become slower.
 */
export function growthRows(title: string, samples: readonly Sample[], beside?: readonly CpuSample[]): Row[] {
  const middle = Math.floor(samples.length / 2);
  return [
    ...memoryGrowthRows(title, samples),
    figure(`${title}: CPU, first half`, cpuShare(samples.slice(0, middle + 1)), '% of a core'),
    ...cpuGrowthRows(title, samples, beside),
  ];
}

/** Memory alone. @param mostMiB a limit of the highest. */
export function memoryGrowthRows(title: string, samples: readonly Sample[], mostMiB?: number): Row[] {
  const middle = Math.floor(samples.length / 2);
  const halves = [samples.slice(0, middle + 1), samples.slice(middle)];
  const [memoryBefore = Number.NaN, memoryAfter = Number.NaN] = halves.map((half) =>
    mean(half.map(({ rssMiB }) => rssMiB)),
  );
  const memoryGrowth = memoryAfter - memoryBefore;
  const highest = figure(`${title}: highest memory`, Math.max(...samples.map(({ rssMiB }) => rssMiB)), 'MiB');
  return [
    figure(`${title}: memory, first half`, memoryBefore, 'MiB'),
    {
      ...figure(`${title}: memory, growth to the second half`, memoryGrowth, 'MiB'),
      limit: '< 10 or < 5 %',
      met: memoryGrowth < 10 || memoryGrowth < memoryBefore * 0.05,
    },
    mostMiB === undefined ? highest : atMost(mostMiB, highest),
  ];
}

function cpuGrowthRows(title: string, samples: readonly CpuSample[], beside?: readonly CpuSample[]): Row[] {
  const growth = cpuGrowth(samples);
  const row = figure(`${title}: CPU, growth to the second half`, percentOf(growth), '%');
  if (beside === undefined) return [atMost(5, row)];
  const machine = cpuGrowth(beside);
  return [
    row,
    figure('a server that keeps nothing: CPU, growth to the second half', percentOf(machine), '%'),
    atMost(5, figure(`${title}: CPU, growth beyond that`, percentOf(growth / machine), '%')),
  ];
}

function percentOf(factor: number): number {
  return (factor - 1) * 100;
}

/** The CPU of the second half, as a multiple of that of the first. */
function cpuGrowth(samples: readonly CpuSample[]): number {
  const middle = Math.floor(samples.length / 2);
  return cpuShare(samples.slice(middle)) / cpuShare(samples.slice(0, middle + 1));
}

function cpuShare(samples: readonly CpuSample[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return Number.NaN;
  return ((last.cpuMs - first.cpuMs) / (last.atMs - first.atMs)) * 100;
}
