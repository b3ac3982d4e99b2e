import { graceEndMs } from '../runtime/connectivity.ts';

/** What a Lease says about the life of a registration. */
interface Heartbeat {
  /**
   * uid of the registration that owns the Lease; undefined when it has no owner and stands for
   * whatever has its name.
   */
  readonly ownerUid: string | undefined;
  /** By how much the heartbeat was older than the write that carries it. */
  readonly ageMs: number;
  /** Undefined when the Lease does not say. */
  readonly ttlMs: number | undefined;
}

/** A registration that lives by heartbeats. */
interface Candidate {
  readonly uid: string;
  /** Applies when its Lease does not say. */
  readonly ttlMs: number;
}

/**
 * When each registration's time is up, by this process' own observation on its monotonic clock: no
 * wall clock is read and no two clocks are compared, so neither skew nor a step of a clock expires
 * anything early or keeps it alive.
 *
 *     deadline = max(last sign of life + TTL, end of the grace)
 *
 * The last sign of life is the latest Lease change less the age of the heartbeat that it carries
 * or, without a Lease, the moment when that was first seen.
 */
export type Deadlines = ReturnType<typeof createDeadlines>;

interface Beat extends Heartbeat {
  /** When the service was last alive. */
  readonly atMs: number;
}

interface Registration extends Candidate {
  /** When it was first seen without a Lease of its own; undefined while it has one. */
  leaselessSinceMs: number | undefined;
}

export function createDeadlines() {
  const beats = new Map<string, Beat>();
  const registrations = new Map<string, Registration>();

  function ownBeat(key: string, uid: string): Beat | undefined {
    const beat = beats.get(key);
    return beat !== undefined && (beat.ownerUid === undefined || beat.ownerUid === uid) ? beat : undefined;
  }

  /** The last sign of life plus TTL, before any grace. */
  function ttlEndMs(key: string): number | undefined {
    const registration = registrations.get(key);
    if (registration === undefined) return undefined;
    const beat = ownBeat(key, registration.uid);
    if (beat !== undefined) return beat.atMs + (beat.ttlMs ?? registration.ttlMs);
    return (registration.leaselessSinceMs ?? Number.POSITIVE_INFINITY) + registration.ttlMs;
  }

  return {
    /**
     * A Lease was written. A heartbeat older than one that is known does not replace it: replicas of
     * the registry write theirs in any order.
     *
     * @returns whether the registration's time may now be up earlier than before, as when its TTL got
     * shorter.
     */
    heartbeatSeen(key: string, heartbeat: Heartbeat, nowMs: number): boolean {
      const registration = registrations.get(key);
      const known = beats.get(key);
      const ttlMs = heartbeat.ttlMs ?? registration?.ttlMs ?? 0;
      const ageMs = Math.min(Math.max(heartbeat.ageMs, 0), ttlMs);
      const earlierMs = known?.ownerUid === heartbeat.ownerUid ? known?.atMs : undefined;
      beats.set(key, { ...heartbeat, atMs: Math.max(nowMs - ageMs, earlierMs ?? Number.NEGATIVE_INFINITY) });
      if (registration === undefined) return false;
      const own = ownBeat(key, registration.uid) !== undefined;
      registration.leaselessSinceMs = own ? undefined : (registration.leaselessSinceMs ?? nowMs);
      return ttlMs < (known?.ttlMs ?? registration.ttlMs);
    },
    /** A Lease is gone. */
    leaseGone(key: string, nowMs: number): void {
      const endMs = ttlEndMs(key);
      beats.delete(key);
      const registration = registrations.get(key);
      if (registration === undefined) return;
      // A Lease that goes after its time was up is the first half of an expiry, perhaps of another
      // operator's: the second half is due at once, not after another TTL.
      const isOver = endMs !== undefined && endMs <= nowMs;
      registration.leaselessSinceMs ??= isOver ? endMs - registration.ttlMs : nowMs;
    },
    registrationSeen(key: string, candidate: Candidate, nowMs: number): void {
      const known = registrations.get(key);
      const since = known?.uid === candidate.uid ? known.leaselessSinceMs : undefined;
      const own = ownBeat(key, candidate.uid) !== undefined;
      registrations.set(key, { ...candidate, leaselessSinceMs: own ? undefined : (since ?? nowMs) });
    },
    registrationGone: (key: string): void => void registrations.delete(key),
    /**
     * @param connectedSinceMs since when nothing was missed; undefined while blind.
     * @returns monotonic ms; undefined while blind, when no deadline is known, and for what was never
     * seen.
     */
    deadlineMs(key: string, connectedSinceMs: number | undefined): number | undefined {
      const registration = registrations.get(key);
      const endMs = ttlEndMs(key);
      if (connectedSinceMs === undefined || registration === undefined || endMs === undefined) return undefined;
      const ttlMs = ownBeat(key, registration.uid)?.ttlMs ?? registration.ttlMs;
      return Math.max(endMs, graceEndMs(connectedSinceMs, ttlMs));
    },
  };
}
