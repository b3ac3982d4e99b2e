import type { OwnerReference } from '@rollcall/crds/object-meta.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { createLeaderLease } from './leader-lease.ts';

/** Standbys that read at the same moment all ask again at different ones. */
const RETRY_JITTER = 0.2;

export interface ElectionTimings {
  /**
   * A standby becomes the leader when it has not seen the Lease change for this long; rounded up to
   * seconds in the Lease.
   */
  readonly leaseDurationMs: number;
  /** A leader that could not renew for this long stops being one; less than the lease duration. */
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

/** A killed leader is replaced after 9 to 12 s. */
export const defaultTimings: ElectionTimings = { leaseDurationMs: 10_000, renewDeadlineMs: 7000, retryMs: 1000 };

export interface ElectionDeps {
  /** Its own, so that renewals never queue behind other requests. */
  readonly connection: KubeConnection;
  readonly namespace: string;
  readonly leaseName: string;
  /** Unlike that of any other process, also of an earlier run on this host. */
  readonly identity: string;
  /**
   * The owner of a Lease that this process makes or acquires from another pod; undefined: none, so
   * it stays.
   */
  readonly owner?: OwnerReference | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly timings: ElectionTimings;
  /** Called with true when this process begins to lead and with false when it stops. */
  readonly onChange: (isLeader: boolean) => void;
}

/**
 * The Lease went to somebody else or could not be renewed in time; whoever acts as leader must stop
 * at once.
 */
export class LeadershipLostError extends Error {
  constructor() {
    super('The leader Lease was lost');
    this.name = 'LeadershipLostError';
  }
}

/** Competes for a Lease as client-go's `leaderelection` does. */
export interface LeaderElection extends Actor {
  /** Rejects with {@link LeadershipLostError}. */
  readonly failed: Promise<never>;
  /** The Lease as last seen; undefined before the first answer. */
  lease(): Lease | undefined;
}

export function createLeaderElection(deps: ElectionDeps): LeaderElection {
  const { clock, log, identity, timings, leaseName } = deps;
  const lease = createLeaderLease({
    leases: resourceClient(deps.connection, leaseKind, deps.namespace),
    name: leaseName,
    identity,
    durationMs: timings.leaseDurationMs,
    owner: deps.owner,
    clock,
  });
  const failed = Promise.withResolvers<never>();
  // Whoever does not wait for it learns from `onChange`.
  failed.promise.catch(() => undefined);
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let leading = false;

  function setLeading(next: boolean): void {
    leading = next;
    deps.onChange(next);
  }

  /** @returns undefined when that is unknown. */
  async function isOurs(): Promise<boolean | undefined> {
    try {
      return await lease.acquireOrRenew();
    } catch (err) {
      log.warn({ err, lease: leaseName }, 'leader Lease could not be read or written');
      return undefined;
    }
  }

  /**
   * @returns since when at least the Lease is ours, in monotonic ms; undefined when asked to stop
   * before.
   */
  async function acquire(): Promise<number | undefined> {
    while (!stopping.signal.aborted) {
      const startedAtMs = clock.monotonicMs();
      if ((await isOurs()) === true) return startedAtMs;
      await sleep(timings.retryMs * (1 + Math.random() * RETRY_JITTER), stopping.signal);
    }
    return undefined;
  }

  /** Renews until asked to stop. @returns whether the Lease is still ours. */
  async function hold(acquiredAtMs: number): Promise<boolean> {
    let deadlineMs = acquiredAtMs + timings.renewDeadlineMs;
    const leftMs = () => deadlineMs - clock.monotonicMs();
    while (await sleep(Math.min(timings.retryMs, Math.max(0, leftMs())), stopping.signal)) {
      if (leftMs() <= 0) return false;
      const startedAtMs = clock.monotonicMs();
      const ours = await within(leftMs(), isOurs());
      if (ours === false) return false;
      if (ours === true) deadlineMs = startedAtMs + timings.renewDeadlineMs;
    }
    return true;
  }

  async function run(): Promise<void> {
    const acquiredAtMs = await acquire();
    if (acquiredAtMs === undefined) return;
    log.info({ identity, lease: leaseName }, 'became the leader');
    setLeading(true);
    if (await hold(acquiredAtMs)) return;
    log.fatal({ identity, lease: leaseName }, 'lost the leader Lease');
    setLeading(false);
    failed.reject(new LeadershipLostError());
  }

  return {
    name: 'leader election',
    start: async () => void (running ??= run()),
    async stop() {
      stopping.abort();
      await running;
      if (!leading) return;
      setLeading(false);
      await lease.release();
      log.info({ identity, lease: leaseName }, 'released the leader Lease');
    },
    failed: failed.promise,
    lease: () => lease.observed(),
  };
}

/**
 * The promise's value, or undefined after the deadline: a request without an answer must not
 * outlast the deadline.
 */
async function within<T>(limitMs: number, promise: Promise<T>): Promise<T | undefined> {
  const settled = new AbortController();
  try {
    return await Promise.race([promise, sleep(limitMs, settled.signal).then(() => undefined)]);
  } finally {
    settled.abort();
  }
}
