import type { AnalysisCheck, DeliveryJob } from '@rollcall/crds/types.gen.ts';

/** A pod that a probe asks. */
export interface ProbeTarget {
  readonly name: string;
  /** IPv4 or IPv6; undefined before the pod has one. */
  readonly ip: string | undefined;
}

/** What a measurement is about. */
export interface CheckSubject {
  readonly job: DeliveryJob;
  /** The pods of the new version that are ready. */
  readonly pods: readonly ProbeTarget[];
}

export interface CheckResult {
  readonly passed: boolean;
  /** For people, without credentials. */
  readonly message: string;
}

/**
 * One way to measure. Whatever goes wrong is a failed measurement with a message that says so.
 *
 * @throws the signal's reason when it aborts, and nothing else.
 */
export type Check<Spec> = (spec: Spec, subject: CheckSubject, signal: AbortSignal) => Promise<CheckResult>;

/** Makes measurements of every kind. */
export interface CheckRunner {
  /** @throws the signal's reason when it aborts. */
  readonly measure: Check<AnalysisCheck>;
  /** Ends the connections. */
  close(): Promise<void>;
}
