/** What is to be done about a peer. */
type Verdict = 'nothing' | 'ping' | 'dead';

/** Whether a peer still answers. */
export interface Liveness {
  /** Anything came from the peer. */
  heard(): void;
  /** @param nowMs time during which this process was awake: what it slept through is no silence of the peer. */
  check(nowMs: number): Verdict;
}

/** A ping every `intervalMs`; a peer that was not heard of between two of them is dead. */
export function createLiveness(intervalMs: number, nowMs: number): Liveness {
  let nextPingAt = nowMs + intervalMs;
  let wasHeard = true;
  return {
    heard() {
      wasHeard = true;
    },
    check(now) {
      if (now < nextPingAt) return 'nothing';
      if (!wasHeard) return 'dead';
      wasHeard = false;
      nextPingAt = now + intervalMs;
      return 'ping';
    },
  };
}

/**
 * A clock that stands still while the process does not run: after a stall the answers of all peers wait to be read, and none of
 * them must be taken for dead.
 *
 * @param mostMs between two readings no more than this counts.
 */
export function createAwakeClock(monotonicMs: () => number, mostMs: number): () => number {
  let last = monotonicMs();
  let awake = 0;
  return () => {
    const now = monotonicMs();
    awake += Math.min(now - last, mostMs);
    last = now;
    return awake;
  };
}
