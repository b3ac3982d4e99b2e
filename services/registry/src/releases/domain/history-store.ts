import type { DeliveryOperation, DeliveryStrategy } from '../../jobs/domain/requested-job.ts';
import type { Artifact, Release } from './release.ts';

/** How an update ended (contract 1, "Update history entry"). */
export type UpdateStatus = 'success' | 'failed' | 'rolled_back';

/** A finished job, to be written into the history. */
export interface HistoryRecord {
  readonly jobUid: string;
  /** Of the object. */
  readonly jobName: string;
  /** As the API calls it. */
  readonly jobId: string;
  readonly operation: DeliveryOperation;
  readonly serviceName: string;
  /** Empty when the job never learnt it. */
  readonly oldVersion: string;
  readonly newVersion: string;
  readonly startedAt: Date;
  readonly finishedAt: Date;
  readonly outcome: UpdateStatus;
  readonly artifact: Artifact;
  readonly requestedBy: string;
  /** Undefined where it ended before anybody had decided on one. */
  readonly strategy: DeliveryStrategy | undefined;
  /** False for a job that changed nothing: the API's history and statistics leave it out. */
  readonly isUpdate: boolean;
  /** What ran before, where it can be delivered again. */
  readonly oldRelease: Release | undefined;
  /** Why it ended as it did: a word for programs, a sentence for people. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly createdAt: Date;
}

/** An update as the history shows it. Strings that are not known are empty. */
export interface HistoryEntry {
  /** Where the entry stands; pass it on to read what comes after it. */
  readonly cursor: string;
  readonly serviceName: string;
  readonly oldVersion: string;
  readonly newVersion: string;
  readonly finishedAt: Date;
  readonly status: UpdateStatus;
  readonly durationSeconds: number;
  readonly artifactUrl: string;
  readonly checksum: string;
}

export interface HistoryQuery {
  /** Of all services when absent. */
  readonly serviceName: string | undefined;
  readonly limit: number;
  /** Only what comes after this entry. */
  readonly after?: string;
}

export interface HistoryPage {
  /** Newest first. */
  readonly entries: readonly HistoryEntry[];
  /** All recorded entries that match, whatever the limit and the position. */
  readonly total: number;
}

/** The updates of one service, counted. */
export interface ServiceUpdates {
  readonly serviceName: string;
  readonly updates: number;
  readonly successful: number;
  readonly failed: number;
  readonly rolledBack: number;
  /** Of all updates together. */
  readonly durationSeconds: number;
}

export interface HistoryStore {
  /**
   * Writes the record with all that it implies, or nothing where the job was recorded before: a
   * rollback marks the update that it undid, and what was delivered becomes a release, as does what
   * ran before.
   *
   * @returns false when the job was recorded before.
   */
  record(record: HistoryRecord): Promise<boolean>;
  /** Which of the jobs are in the history, by uid. */
  recorded(jobUids: readonly string[]): Promise<ReadonlySet<string>>;
  page(query: HistoryQuery): Promise<HistoryPage>;
  /** @returns undefined without any entry; an empty version when no update succeeded. */
  lastDelivered(serviceName: string): Promise<{ readonly version: string } | undefined>;
  /** Services with the most updates first. */
  countUpdates(): Promise<ServiceUpdates[]>;
}
