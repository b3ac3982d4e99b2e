import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongFilesFirst } from './test/support/long-files-first.ts';

/**
 * By itself Vitest leaves a core to others, and on two cores runs one file after the other. Files with processes wait for most of
 * their time, and not for the machine: four of them keep one core busy.
 */
const cores = availableParallelism();

/** A state that is waited for may take its time on a busy machine; where it may not, the test says how long. */
const expecting = { poll: { timeout: 30_000 } };

export default defineConfig({
  test: {
    sequence: { sequencer: LongFilesFirst },
    reporters: ['default', './test/support/closing-line-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            '{crds,platform,operator,fetcher,image,services/*,clients/*,cli,local,simulators,bench}/**/*.test.ts',
            // Simulations in memory, which need no server.
            'test/{operator,payment}/model/**/*.test.ts',
          ],
          exclude: ['**/node_modules/**'],
          maxWorkers: 2 * cores,
          // Starting a process and loading everything anew for each file takes more than its tests do.
          pool: 'threads',
          isolate: false,
          // Milliseconds each on an idle machine; a busy one must not fail them.
          testTimeout: 60_000,
          expect: expecting,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          exclude: [
            'test/e2e/**',
            'test/cluster/**',
            'test/heavy/**',
            'test/openapi/**',
            'test/{operator,payment}/model/**',
          ],
          globalSetup: ['test/support/global-setup.ts'],
          maxWorkers: 2 * cores,
          // As for unit tests: what a file imports is loaded once for each worker.
          isolate: false,
          // After the unit tests, which have another number of workers.
          sequence: { groupOrder: 1 },
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: expecting,
        },
      },
      {
        test: {
          name: 'openapi',
          include: ['test/openapi/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/e2e/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 300_000,
          expect: expecting,
          // Their operators and control planes are busy for much of the time.
          maxWorkers: cores + 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'heavy',
          include: ['test/heavy/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 120_000,
          expect: expecting,
          // Each has the machine to itself.
          fileParallelism: false,
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
          // Three at once start so many pods that those under load get no answer from the node's DNS in time.
          maxWorkers: cores,
        },
      },
    ],
  },
});
