import type { Reporter, TestModule } from 'vitest/node';

/**
 * Prints `N passed, N failed, N skipped` for the whole run as the very last line, for scripts. It
 * is written when the process exits, because teardown and other reporters may still print after the
 * last test.
 *
 * A test file that could not be loaded, and an error outside of any test, count as one failure
 * each; so does a run that never got as far as a test but ended with an error. Before it are named
 * tests that failed, with the first line of why; of a property also what it takes to try it again.
 *
 * @public Loaded by vitest.config.ts.
 */
export default class ClosingLineReporter implements Reporter {
  private readonly counts = { passed: 0, failed: 0, skipped: 0 };
  private readonly named: string[] = [];

  onInit(): void {
    process.once('exit', (code) => {
      const { passed, failed, skipped } = this.counts;
      const failures = code === 0 ? failed : Math.max(failed, 1);
      for (const line of this.named) process.stdout.write(`${line}\n`);
      process.stdout.write(`${passed} passed, ${failures} failed, ${skipped} skipped\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      const nameFailures = (name: string, errors: readonly unknown[]): void => {
        for (const error of errors) this.named.push(`failed: ${name}: ${firstLine(error)}`);
      };
      counts.failed += module.errors().length;
      nameFailures(module.relativeModuleId, module.errors());
      for (const suite of module.children.allSuites()) {
        counts.failed += suite.errors().length;
        nameFailures(`${module.relativeModuleId} > ${suite.fullName}`, suite.errors());
      }
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        const name = `${module.relativeModuleId} > ${test.fullName}`;
        if (state === 'passed' || state === 'failed') counts[state] += 1;
        else counts.skipped += 1;
        if (state === 'failed') nameFailures(name, errors.slice(0, 1));
      }
    }
    for (const error of unhandledErrors) this.named.push(`failed outside of any test: ${firstLine(error)}`);
    Object.assign(this.counts, counts);
  }
}

/** The first line of an error's message, and of what caused it, for a list of failures. */
function firstLine(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('message' in error)) return String(error);
  const [first = '', ...rest] = String(error.message).split('\n');
  const seed = rest.find((line) => line.startsWith('{ seed: '));
  const message = seed === undefined ? first : `${first} with ${seed}`;
  const cause = 'cause' in error && error.cause !== undefined ? `: ${firstLine(error.cause)}` : '';
  return `${message}${cause}`;
}
