import type { Reporter, TestModule } from 'vitest/node';

/**
 * Prints `N passed, N failed` (and `, N skipped` if any) for the whole run as the very last line, for scripts. It is
 * written when the process exits, because teardown and other reporters may still print after the last test.
 *
 * A test file that could not be loaded, and an error outside of any test, count as one failure each; so does a run that
 * never got as far as a test but ended with an error. Tests that passed only when they were run again are named before it.
 *
 * @public Loaded by vitest.config.ts.
 */
export default class ClosingLineReporter implements Reporter {
  private readonly counts = { passed: 0, failed: 0, skipped: 0 };
  private readonly flaky: string[] = [];

  onInit(): void {
    process.once('exit', (code) => {
      const { passed, failed, skipped } = this.counts;
      const failures = code === 0 ? failed : Math.max(failed, 1);
      for (const name of this.flaky) process.stdout.write(`passed only when run again: ${name}\n`);
      const line = `${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
      process.stdout.write(`${line}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      counts.failed += module.errors().length;
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed' || state === 'failed') counts[state] += 1;
        else counts.skipped += 1;
        if (test.diagnostic()?.flaky === true) this.flaky.push(`${module.relativeModuleId} > ${test.fullName}`);
      }
    }
    Object.assign(this.counts, counts);
  }
}
