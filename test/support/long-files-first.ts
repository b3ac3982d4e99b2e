import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that wait for minutes, the longest first; from the root of the repository. */
const LONG = [
  'test/e2e/outage.test.ts',
  'test/e2e/delivery/failures.test.ts',
  'test/e2e/delivery/crashes.test.ts',
  'test/e2e/delivery/strategies.test.ts',
  'test/e2e/gateway-kills-streams.test.ts',
  'test/e2e/gateway-kills.test.ts',
  'test/e2e/kills.test.ts',
  'test/e2e/delivery/policies.test.ts',
  'test/payment/payment-kills.test.ts',
  'test/e2e/start.test.ts',
  'test/communication/crashes.test.ts',
  'test/communication/kills.test.ts',
  'test/chart/lifecycle.test.ts',
  'local/src/go-build.test.ts',
  'test/cluster/chart/in-use.test.ts',
  'test/cluster/chart/rolling.test.ts',
  'test/cluster/delivery.test.ts',
  'test/cluster/chart/ingress.test.ts',
  'test/cluster/gateway.test.ts',
  'test/cluster/chart/defaults.test.ts',
];

/**
 * Starts the files that take longest before all others, so that none of them is left to run alone
 * at the end. Vitest would go by the size of files it has not run before, and these are small.
 *
 * @public Loaded by vitest.config.ts.
 */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = LONG.indexOf(relative(this.ctx.config.root, moduleId));
      return index === -1 ? LONG.length : index;
    };
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
