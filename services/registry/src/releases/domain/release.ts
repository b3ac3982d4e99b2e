/** What a delivery puts in place of the running version. */
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
  /**
   * Stores the release; announced again, its artifact and the time of its announcement are
   * replaced.
   */
  record(release: Release): Promise<void>;
  /**
   * Stores it as {@link record} does, if the work succeeds; the next one of the same version waits
   * for that.
   */
  recordWith<T>(release: Release, work: () => Promise<T>): Promise<T>;
  /**
   * With the artifact that was delivered last with success, else the one announced or asked for
   * last.
   */
  find(serviceName: string, version: string): Promise<Release | undefined>;
  /** The versions of a service, the one announced last first; at most the latest thousand. */
  versions(serviceName: string): Promise<string[]>;
}
