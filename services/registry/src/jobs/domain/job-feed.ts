import type { Followed } from '../../feeds/catch-up.ts';
import { createEventLog } from '../../feeds/event-log.ts';
import type { Job } from './jobs.ts';

/**
 * What subscribers receive of jobs; all that happens to one between its beginning and its removal
 * is `modified`.
 */
type JobFeedEventType = 'added' | 'modified' | 'removed';

export interface JobFeedEvent {
  /** The store's version of the change: it grows, and is the same on every replica. */
  readonly version: number;
  readonly type: JobFeedEventType;
  readonly job: Job;
}

/** A change of a job as the store's watch brought it, in the order of the store's versions. */
interface JobChange {
  readonly version: number;
  readonly job: Job;
  readonly deleted: boolean;
}

/** The recent events of all jobs, for subscribers that come back, and the live ones. */
export interface JobFeed extends Followed {
  apply(change: JobChange): void;
  /** Nothing else happened up to `version`. */
  reach(version: number): void;
  /**
   * A complete list of the store: whatever differs from what was sent becomes events of the version
   * before it.
   */
  replace(jobs: readonly Job[], version: number): void;
  /** The events after `version`; undefined: the subscriber has to begin with {@link snapshot}. */
  since(version: number): readonly JobFeedEvent[] | undefined;
  /** Every job that is there, as `added` events. */
  snapshot(): readonly JobFeedEvent[];
  /**
   * The version that {@link snapshot} is of, that of the last change or list; undefined before the
   * first list.
   */
  readonly version: number | undefined;
  /** @returns a function that ends the subscription. */
  subscribe(listener: (event: JobFeedEvent) => void): () => void;
}

export interface JobFeedDeps {
  /** How many past events are kept. */
  readonly capacity: number;
  /** The job as the API shows it: what leaves this as it is, is no event. */
  readonly describe: (job: Job) => object;
}

export function createJobFeed({ capacity, describe }: JobFeedDeps): JobFeed {
  const published = new Map<string, { readonly job: Job; readonly shown: string }>();
  const log = createEventLog<JobFeedEvent>(capacity);
  let version: number | undefined;

  function remove(job: Job, at: number): void {
    // Another job of the same id may have come since.
    if (published.get(job.id)?.job.uid !== job.uid) return;
    published.delete(job.id);
    log.append({ version: at, type: 'removed', job });
  }

  function put(job: Job, at: number): void {
    const before = published.get(job.id)?.job;
    if (before !== undefined && before.uid !== job.uid) remove(before, at);
    const known = published.get(job.id);
    const shown = JSON.stringify(describe(job));
    if (known?.shown === shown) return;
    published.set(job.id, { job, shown });
    log.append({ version: at, type: known === undefined ? 'added' : 'modified', job });
  }

  return {
    apply({ version: at, job, deleted }) {
      if (at <= (version ?? 0)) return;
      version = at;
      if (deleted) remove(job, at);
      else put(job, at);
      log.reach(at);
    },
    reach: (at) => log.reach(at),
    replace(jobs, at) {
      if (version === undefined) {
        for (const job of jobs) published.set(job.id, { job, shown: JSON.stringify(describe(job)) });
      } else {
        // A subscriber that gets only some of these events, and resumes from their version, is sent
        // everything anew.
        const listed = new Set(jobs.map(({ uid }) => uid));
        for (const { job } of published.values()) if (!listed.has(job.uid)) remove(job, version);
        for (const job of jobs) put(job, version);
      }
      log.restart(at);
      version = Math.max(version ?? 0, at);
      log.reach(version);
    },
    get reached() {
      return log.reached;
    },
    whenReached: (at, signal) => log.whenReached(at, signal),
    since: (from) => log.since(from),
    snapshot: () => [...published.values()].map(({ job }) => ({ version: version ?? 0, type: 'added', job })),
    get version() {
      return version;
    },
    subscribe: (listener) => log.subscribe(listener),
  };
}
