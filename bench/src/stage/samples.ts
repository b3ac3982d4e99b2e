import { sleep } from '@rollcall/platform/retry.ts';
import { mean } from '../load/statistics.ts';
import { atMost, figure, type Row } from '../report.ts';
import { sumOf } from './metrics.ts';
import type { RollcallSubject } from './stage.ts';

const SAMPLE_MS = 5000;

/** What a process used until then. */
interface Sample {
  readonly atMs: number;
  readonly rssMiB: number;
  readonly cpuMs: number;
}

/** Samples a process for so long, but for the last interval. */
export async function sample(subject: RollcallSubject, durationMs: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  const endMs = performance.now() + durationMs - SAMPLE_MS;
  do {
    const metrics = await subject.metrics();
    samples.push({
      atMs: performance.now(),
      rssMiB: sumOf(metrics, 'process_resident_memory_bytes') / 2 ** 20,
      cpuMs: sumOf(metrics, 'process_cpu_seconds_total') * 1000,
    });
    await sleep(SAMPLE_MS);
  } while (performance.now() < endMs);
  return samples;
}

/** Whether memory and CPU stay what they are: the second half of the samples against the first. */
export function growthRows(title: string, samples: readonly Sample[]): Row[] {
  const middle = Math.floor(samples.length / 2);
  const halves = [samples.slice(0, middle + 1), samples.slice(middle)];
  const [memoryBefore = Number.NaN, memoryAfter = Number.NaN] = halves.map((half) =>
    mean(half.map(({ rssMiB }) => rssMiB)),
  );
  const [cpuBefore = Number.NaN, cpuAfter = Number.NaN] = halves.map(cpuShare);
  const memoryGrowth = memoryAfter - memoryBefore;
  return [
    figure(`${title}: memory, first half`, memoryBefore, 'MiB'),
    {
      ...figure(`${title}: memory, growth to the second half`, memoryGrowth, 'MiB'),
      limit: '< 10 or < 5 %',
      met: memoryGrowth < 10 || memoryGrowth < memoryBefore * 0.05,
    },
    figure(`${title}: highest memory`, Math.max(...samples.map(({ rssMiB }) => rssMiB)), 'MiB'),
    figure(`${title}: CPU, first half`, cpuBefore, '% of a core'),
    atMost(5, figure(`${title}: CPU, growth to the second half`, (cpuAfter / cpuBefore - 1) * 100, '%')),
  ];
}

function cpuShare(samples: readonly Sample[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return Number.NaN;
  return ((last.cpuMs - first.cpuMs) / (last.atMs - first.atMs)) * 100;
}
