import { randomBytes } from 'node:crypto';

const PAYLOAD_BYTES = 8;

/** What is to be done about a peer. */
export type Verdict = 'nothing' | 'dead' | { readonly ping: Buffer };

/** What {@link Liveness} reads besides pongs. */
export interface Intake {
  /** How often the peer has read something so far. */
  readonly sentFrames: number;
  /** Whether there is more that it has not read. */
  readonly isWaiting: boolean;
}

/** Whether a peer still answers. */
export interface Liveness {
  /** A pong came. @returns whether it is the answer to the ping that waits for one. */
  answered(payload: Buffer): boolean;
  /**
   * @param nowMs time during which this process was awake: what it slept through is no silence of
   * the peer.
   */
  check(nowMs: number, intake: Intake): Verdict;
}

/**
 * A ping every `intervalMs`. A peer that did not answer it by then is dead, unless it has read some
 * of what waits for it: the ping may be behind megabytes that it is still reading. Nothing else is
 * a sign of life: a peer that only sends could have stopped reading for ever, and what waits for it
 * would stay as long. Hence nobody can know what is in a ping without reading it.
 */
export function createLiveness(intervalMs: number, nowMs: number): Liveness {
  let nextCheckAt = nowMs + intervalMs;
  let awaited: Buffer | undefined;
  let before: Intake = { sentFrames: 0, isWaiting: false };
  return {
    answered(payload) {
      if (awaited?.equals(payload) !== true) return false;
      awaited = undefined;
      return true;
    },
    check(now, intake) {
      if (now < nextCheckAt) return 'nothing';
      // Where nothing waited the system accepted it, which says nothing of the peer.
      const hasRead = before.isWaiting && intake.sentFrames > before.sentFrames;
      if (awaited !== undefined && !hasRead) return 'dead';
      before = intake;
      nextCheckAt = now + intervalMs;
      // One at a time: further ones would only queue up behind it.
      if (awaited !== undefined) return 'nothing';
      awaited = randomBytes(PAYLOAD_BYTES);
      return { ping: awaited };
    },
  };
}

/**
 * A clock that stands still while the process does not run: after a stall the answers of all peers
 * wait to be read, and none of them must count as dead.
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
