import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongFilesFirst } from './test/support/long-files-first.ts';

/**
 * A shared machine stops for seconds at times. In CI a test that touches processes may be run once more; the closing lines name
 * each that needed it, so that none hides.
 */
const retry = process.env['CI'] === 'true' ? 1 : 0;

/** By itself Vitest leaves a core to others, and on two cores runs one file after the other. Most files wait, and not for the machine. */
const maxWorkers = Math.max(4, availableParallelism() - 1);

/** A state that is waited for may take its time on a busy machine; where it may not, the test says how long. */
const expecting = { poll: { timeout: 10_000 } };

export default defineConfig({
  test: {
    sequence: { sequencer: LongFilesFirst },
    reporters: ['default', './test/support/closing-line-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{crds,platform,operator,fetcher,image,services/*,clients/*,cli,local,bench}/**/*.test.ts'],
          exclude: ['**/node_modules/**'],
          maxWorkers,
          // Milliseconds each on an idle machine; a busy one must not fail them.
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          exclude: ['test/e2e/**', 'test/cluster/**'],
          globalSetup: ['test/support/global-setup.ts'],
          maxWorkers,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: expecting,
          retry,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 300_000,
          expect: expecting,
          // Their operators and control planes are busy for much of the time.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
          retry,
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts'],
          globalSetup: ['test/cluster/support/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 300_000,
          expect: expecting,
          // They measure times and what is on the host.
          fileParallelism: false,
          retry,
        },
      },
    ],
  },
});
