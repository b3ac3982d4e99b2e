import type { Row } from './report.ts';
import type { Stage } from './stage/stage.ts';

/** What a bench is run with. */
export interface BenchContext {
  readonly stage: Stage;
  /** How many registrations there are while measuring; limits are meant for 10,000. */
  readonly services: number;
  /** How many of these are instances of one service. */
  readonly perName: number;
  /** How long memory is watched; undefined: as long as the bench usually does. */
  readonly minutes: number | undefined;
  /** Called with a line of progress. */
  readonly log: (line: string) => void;
}

/** One measurement that can be run by itself. */
export interface Bench {
  readonly name: string;
  /** One line for the list of benches. */
  readonly measures: string;
  /** Too long for every run: only when named. */
  readonly onlyWhenNamed?: true;
  /**
   * Needs a cluster that runs pods (fake ones), which costs the machine too much to be there for
   * the others.
   */
  readonly workloads?: true;
  /** @throws when nothing could be measured; a missed limit is no error. */
  run(context: BenchContext): Promise<readonly Row[]>;
}
