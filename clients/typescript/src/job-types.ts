/** What the registry API sends and receives of delivery jobs. These objects are the JSON itself. */

/** How traffic is moved to a new version. */
export type Strategy = 'rolling' | 'blue-green' | 'canary';

/** Every strategy that the registry accepts. */
export const strategies: readonly Strategy[] = ['rolling', 'blue-green', 'canary'];

/** Where a job stands; the last three are its ends. */
export const jobPhases = [
  'Pending',
  'Progressing',
  'Paused',
  'Verifying',
  'Promoting',
  'RollingBack',
  'Succeeded',
  'RolledBack',
  'Failed',
] as const;

export type JobPhase = (typeof jobPhases)[number];

/** What is run as a version: a container image, or a file at an https URL. */
export type ArtifactType = 'image' | 'binary';

/** What one check of the new version has measured so far. */
interface JobAnalysis {
  readonly name: string;
  readonly measurements: number;
  readonly failures: number;
  /** Of the last measurement. */
  readonly message: string | null;
}

/** One deploy or rollback job. Times are ISO 8601 with offset. */
export interface JobRecord {
  readonly job_id: string;
  readonly service_name: string;
  readonly operation: 'deploy' | 'rollback';
  /** The version that runs when the job has succeeded. */
  readonly version: string;
  /** The one that ran before; null as long as it is not known. */
  readonly old_version: string | null;
  /** Null as long as it is not known. */
  readonly strategy: Strategy | null;
  readonly phase: JobPhase;
  /** The state of the strategy, more exact than the phase. */
  readonly stage: string | null;
  /** Counted from 0. */
  readonly step: number | null;
  /** Percentage of traffic that the new version is to have. */
  readonly weight: number | null;
  /**
   * Percentage that it has: where replicas make it, as near to the weight as whole pods come. Null
   * where nobody knows.
   */
  readonly actual_weight: number | null;
  /** Why it stands where it does: one word for programs. */
  readonly reason: string | null;
  /** The same for people. */
  readonly message: string;
  readonly artifact: { readonly url: string; readonly type: string; readonly checksum: string | null };
  readonly requested_by: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly analysis: readonly JobAnalysis[];
}

/** Which jobs to list. */
export interface JobFilter {
  readonly service_name?: string | undefined;
  readonly phase?: JobPhase | undefined;
  /** Largest number of jobs. */
  readonly limit?: number | undefined;
}

/** Answer of `GET /jobs`, newest first. */
export interface JobList {
  readonly jobs: readonly JobRecord[];
  readonly total: number;
}

/** Answer of `POST /jobs/{job_id}/promote` and `/abort`. */
export interface AcceptedJobCall {
  readonly status: string;
  readonly job_id: string;
  readonly message: string;
}
