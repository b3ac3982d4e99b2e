/** What a delivery puts in place of the running version (DESIGN section 5). */
export type ArtifactType = 'image' | 'binary';

export interface Artifact {
  /** An image reference, or the https URL of a binary. */
  readonly url: string;
  readonly type: ArtifactType;
  /** `<algorithm>:<hex digest>`; a binary always has one. */
  readonly checksum: string | undefined;
}

/** A version of a service that can be deployed or rolled back to. */
export interface Release {
  readonly serviceName: string;
  readonly version: string;
  readonly artifact: Artifact;
}

export interface ReleaseStore {
  /** Stores the release; announced again, its artifact and the time of its announcement are replaced. */
  record(release: Release): Promise<void>;
  /** Stores it as {@link record} does, if the work succeeds; the next one of the same version waits for that. */
  recordWith<T>(release: Release, work: () => Promise<T>): Promise<T>;
  /** With the artifact that was delivered last with success, else the one announced or asked for last. */
  find(serviceName: string, version: string): Promise<Release | undefined>;
  /** The versions of a service, the one announced last first; at most the latest thousand. */
  versions(serviceName: string): Promise<string[]>;
}

export type DeliveryOperation = 'Deploy' | 'Rollback';
export type DeliveryStrategy = 'Rolling' | 'BlueGreen' | 'Canary';

/** A job as a webhook call asks for it. */
export interface RequestedJob {
  /** `deploy-<service_name>-<version>-<unix_seconds>`, or `rollback-…` (contract 1, "Webhooks"). */
  readonly jobId: string;
  readonly operation: DeliveryOperation;
  readonly release: Release;
  /** Undefined: as the policy of the service says. */
  readonly strategy: DeliveryStrategy | undefined;
  readonly requestedBy: string;
  /** Whether it is to end with nothing touched where what runs turns out to be as new. */
  readonly onlyIfNewer: boolean;
}

/** How a requested job compares with the one that is stored under its id. */
export type JobComparison = 'absent' | 'same' | 'different';

export interface DeliveryJobStore {
  /** @returns `absent` when the job was created now, else how it compares with the one that was there first. */
  create(job: RequestedJob): Promise<JobComparison>;
}

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
  /** False for a job that was given up while it waited: the API's history and statistics leave it out. */
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
  readonly artifactPath: string;
  readonly backupPath: string;
}

export interface HistoryQuery {
  /** Of all services when absent. */
  readonly serviceName?: string;
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
   * Writes the record with all that it implies, or nothing where the job was recorded before: a rollback marks the update
   * that it undid, and what was delivered becomes a release, as does what ran before.
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

/** Where the notifications of a service go (contract 1, "Webhook configuration"). */
export interface WebhookSettings {
  /** `*`: of all services. */
  readonly serviceName: string;
  /** URL by channel. */
  readonly endpoints: ReadonlyMap<string, string>;
  readonly configuredAt: Date;
  /** Where the secret is kept; undefined when there is none. */
  readonly secretRef: { readonly name: string; readonly key: string } | undefined;
}

/** A configuration as it is to become. */
export interface WebhookReplacement {
  /** `*`: of all services. */
  readonly serviceName: string;
  /** URL by channel. */
  readonly endpoints: Readonly<Record<string, string>>;
  /** Undefined: the secret stays as it is. */
  readonly secret: string | undefined;
}

export interface WebhookConfigStore {
  find(serviceName: string): Promise<WebhookSettings | undefined>;
  /**
   * Replaces the endpoints as a whole, and the secret unless it is undefined, in place of exactly the settings that were
   * permitted to be replaced: where somebody else writes first, it asks again about what is there then.
   *
   * @param permit told what is to be replaced, undefined where there is nothing; what it throws ends the call, nothing written.
   */
  replace(
    replacement: WebhookReplacement,
    permit: (present: WebhookSettings | undefined) => Promise<void>,
  ): Promise<void>;
  /** @returns undefined when the secret that the settings refer to is not there. */
  readSecret(settings: WebhookSettings): Promise<string | undefined>;
}

/** Where the notifications of services go, as was last heard of. */
export interface ChannelDirectory {
  /**
   * @param isFresh whether the store itself is to be asked.
   * @returns URLs by channel: those of the service, the global ones where it has none.
   */
  find(serviceName: string, isFresh: boolean): Promise<ReadonlyMap<string, string>>;
}
