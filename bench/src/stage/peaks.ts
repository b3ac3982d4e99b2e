import { sleep } from '@rollcall/platform/retry.ts';
import type { RollcallSubject } from './stage.ts';

const SAMPLE_MS = 1000;

/** Samples the memory of processes until stopped; then the highest of each, in MiB. */
export function watchPeaks(subjects: readonly RollcallSubject[]): { stop(): Promise<number[]> } {
  const stopped = new AbortController();
  const peaks = subjects.map(() => 0);
  const sampling = (async () => {
    do {
      const sizes = await Promise.all(subjects.map((subject) => subject.rssMiB()));
      for (const [index, size] of sizes.entries()) peaks[index] = Math.max(peaks[index] ?? 0, size);
    } while (await sleep(SAMPLE_MS, stopped.signal));
  })();
  // Who stops it sees the rejection; where the bench has failed meanwhile, nobody does.
  sampling.catch(() => undefined);
  return {
    async stop() {
      stopped.abort();
      await sampling;
      return peaks;
    },
  };
}
