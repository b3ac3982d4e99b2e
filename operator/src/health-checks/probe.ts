import type { HealthCheck } from '@rollcall/crds/types.gen.ts';
import type { Outcome } from './next-state.ts';

/** What is asked: host and port are always those of the registered URL. */
export interface Target {
  readonly url: string;
  readonly check: HealthCheck;
}

/**
 * Asks once.
 *
 * @returns what was seen, for people.
 * @throws where the service says that it is not well, or does not answer.
 */
export type Probe = (url: URL, check: HealthCheck, signal: AbortSignal) => Promise<string>;

/** Asks services whether they are well. */
export interface Prober {
  /**
   * @returns undefined where nothing was learned of the service: no name server answered.
   * @throws the signal's reason when that aborts.
   */
  probe(target: Target, signal: AbortSignal): Promise<Outcome | undefined>;
  close(): Promise<void>;
}
