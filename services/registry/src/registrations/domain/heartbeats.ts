import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import type { HeartbeatWrite, InstanceKey, RegistrationLife } from './registration.ts';

/**
 * The contract's maximum safe heartbeat interval is 45 s of a TTL of 60 s; other TTLs are divided
 * alike.
 */
const ABSORB_FRACTION = 0.25;
const FLUSH_RETRY_MS = 1000;
const FLUSH_CONCURRENCY = 32;
/** Of registrations that ended, as many as streams tell of again. */
const ENDED_MOST = 10_000;

export interface HeartbeatsDeps {
  readonly clock: Clock;
  /** Writes one heartbeat; false when there is nothing to renew any more. */
  readonly renew: (life: RegistrationLife, heartbeat: HeartbeatWrite) => Promise<boolean>;
  /** Called when a heartbeat of the service has come, written or not. */
  readonly onBeat: (life: RegistrationLife) => void;
  /** Called when a flush failed for a reason other than the registration being gone. */
  readonly onFlushFailure: (serviceName: string, message: string) => void;
}

/** The heartbeats that this replica has accepted, and which of them it has not written yet. */
export interface Heartbeats {
  /**
   * Accepts a heartbeat. When the last durable one is younger than the absorb window it is kept in
   * memory and written when the window ends; otherwise it is written first.
   *
   * @returns false when the registration is gone or being expired.
   */
  beat(key: HeartbeatKey): Promise<boolean> | true;
  /** Notes a heartbeat that has just been written: at registration, or by another replica. */
  sawDurable(key: HeartbeatKey, heartbeat: HeartbeatWrite): void;
  /**
   * Notes a heartbeat that was found in the store. When it was written is not known, so the next
   * one is written.
   */
  learned(key: HeartbeatKey, at: Date): void;
  /** When the newest heartbeat that this replica knows came. */
  lastBeatAt(id: string): Date | undefined;
  /** As {@link Heartbeats.lastBeatAt}, also of registrations that ended lately: streams tell of these. */
  lastHeardAt(id: string): Date | undefined;
  forget(id: string): void;
  /** Heartbeats that are acknowledged and not written yet. */
  pending(): number;
  /** Writes what is pending. For shutdown: no heartbeat may come during or after it. */
  flushAll(): Promise<void>;
}

interface HeartbeatKey extends RegistrationLife {
  readonly ttlSeconds: number;
}

interface Entry extends InstanceKey {
  readonly windowMs: number;
  durableBeatMs: number;
  /** Of the last heartbeat that was acknowledged before it was written. */
  absorbedBeatMs: number;
  lastBeatMs: number;
  lastBeatAt: Date;
  /**
   * Wall-clock instant of the heartbeat that this replica wrote last; it comes back from the store
   * as if it were news.
   */
  writtenAtMs: number;
  flush: NodeJS.Timeout | undefined;
  writing: Promise<boolean> | undefined;
}

/** How long a heartbeat may be withheld from the store. */
export function absorbWindowMs(ttlSeconds: number): number {
  return ttlSeconds * 1000 * ABSORB_FRACTION;
}

/**
 * How old a heartbeat is that was found in the store, in ms. It may have been found late, as after
 * a break of the watch, which only its time shows; where its writer's clock is ahead, nothing does.
 */
export function storedAgeMs({ at, ageMs }: HeartbeatWrite, clock: Clock): number {
  return Math.max(ageMs, clock.now().getTime() - at.getTime());
}

/**
 * The window is measured from the last durable *heartbeat*, not from its write: a service that
 * beats at least every TTL - window then always has a durable heartbeat younger than its TTL, even
 * when this process dies.
 */
export function createHeartbeats({ clock, renew, onBeat, onFlushFailure }: HeartbeatsDeps): Heartbeats {
  const entries = new Map<string, Entry>();
  const ended = new Map<string, Date>();
  const end = (id: string): void => moveToEnded(id, entries, ended);

  function entryOf(key: HeartbeatKey): Entry {
    const entry = entries.get(key.id) ?? newEntry(key);
    entries.set(key.id, entry);
    return entry;
  }

  /** Writes the newest heartbeat of the entry; several callers share one write. */
  function write(id: string, entry: Entry): Promise<boolean> {
    clearTimeout(entry.flush);
    entry.flush = undefined;
    entry.writing ??= writeNow(id, entry).finally(() => {
      entry.writing = undefined;
      // A write that failed has replaced the flush of what was acknowledged before.
      if (entry.absorbedBeatMs > entry.durableBeatMs) scheduleFlush(id, entry, FLUSH_RETRY_MS);
    });
    return entry.writing;
  }

  async function writeNow(id: string, entry: Entry): Promise<boolean> {
    const { serviceName, instanceId, lastBeatMs, lastBeatAt } = entry;
    const ageMs = Math.max(0, Math.round(clock.monotonicMs() - lastBeatMs));
    entry.writtenAtMs = lastBeatAt.getTime();
    const renewed = await renew({ serviceName, instanceId, id }, { at: lastBeatAt, ageMs });
    if (renewed) entry.durableBeatMs = Math.max(entry.durableBeatMs, lastBeatMs);
    else end(id);
    return renewed;
  }

  function scheduleFlush(id: string, entry: Entry, delayMs: number): void {
    entry.flush ??= setTimeout(() => {
      entry.flush = undefined;
      if (entries.get(id) !== entry || entry.lastBeatMs <= entry.durableBeatMs) return;
      void flush(id, entry);
    }, delayMs);
  }

  async function flush(id: string, entry: Entry): Promise<void> {
    await write(id, entry).catch((error: unknown) => onFlushFailure(entry.serviceName, errorMessage(error)));
  }

  async function writeThenTake(id: string, entry: Entry): Promise<boolean> {
    const { lastBeatMs } = entry;
    const renewed = await write(id, entry);
    if (renewed && entry.durableBeatMs < lastBeatMs) return write(id, entry);
    return renewed;
  }

  return {
    beat(key) {
      const entry = entryOf(key);
      const nowMs = clock.monotonicMs();
      entry.lastBeatMs = nowMs;
      entry.lastBeatAt = clock.now();
      onBeat(key);
      const windowLeftMs = entry.durableBeatMs + entry.windowMs - nowMs;
      if (windowLeftMs <= 0) return writeThenTake(key.id, entry);
      entry.absorbedBeatMs = nowMs;
      scheduleFlush(key.id, entry, windowLeftMs);
      return true;
    },
    sawDurable(key, { at, ageMs }) {
      const entry = entryOf(key);
      if (at.getTime() === entry.writtenAtMs) return;
      const beatMs = clock.monotonicMs() - storedAgeMs({ at, ageMs }, clock);
      entry.durableBeatMs = Math.max(entry.durableBeatMs, beatMs);
      if (beatMs <= entry.lastBeatMs) return;
      entry.lastBeatMs = beatMs;
      entry.lastBeatAt = at;
    },
    learned(key, at) {
      const entry = entryOf(key);
      if (at > entry.lastBeatAt) entry.lastBeatAt = at;
    },
    lastBeatAt: (id) => entries.get(id)?.lastBeatAt,
    lastHeardAt: (id) => entries.get(id)?.lastBeatAt ?? ended.get(id),
    forget: end,
    pending: () => unwritten(entries).length,
    async flushAll() {
      const limiter = createConcurrencyLimiter({ most: FLUSH_CONCURRENCY });
      await Promise.all(unwritten(entries).map(([id, entry]) => limiter.run(id, () => flush(id, entry))));
      for (const entry of entries.values()) clearTimeout(entry.flush);
    },
  };
}

/** Streams tell of the end after it, and again to who resumes. */
function moveToEnded(id: string, entries: Map<string, Entry>, ended: Map<string, Date>): void {
  const entry = entries.get(id);
  if (entry === undefined) return;
  clearTimeout(entry.flush);
  entries.delete(id);
  ended.set(id, entry.lastBeatAt);
  const [oldest] = ended.size > ENDED_MOST ? ended.keys() : [];
  if (oldest !== undefined) ended.delete(oldest);
}

function unwritten(entries: ReadonlyMap<string, Entry>): [string, Entry][] {
  return [...entries].filter(([, entry]) => entry.lastBeatMs > entry.durableBeatMs);
}

function newEntry({ serviceName, instanceId, ttlSeconds }: HeartbeatKey): Entry {
  return {
    serviceName,
    instanceId,
    windowMs: absorbWindowMs(ttlSeconds),
    durableBeatMs: Number.NEGATIVE_INFINITY,
    absorbedBeatMs: Number.NEGATIVE_INFINITY,
    lastBeatMs: Number.NEGATIVE_INFINITY,
    lastBeatAt: new Date(0),
    writtenAtMs: Number.NaN,
    flush: undefined,
    writing: undefined,
  };
}
