import type { JWK } from 'jose';

/** A key pair that access tokens and identities are signed with. */
export interface SigningKey {
  /** Names the key in the header of what it signed (RFC 7517, section 4.5). */
  readonly kid: string;
  readonly createdAtMs: number;
  readonly privateJwk: JWK;
}

/** How long a key does what, in milliseconds. */
export interface RotationPolicy {
  /** A key signs for this long before its successor does. */
  readonly rotateAfterMs: number;
  /**
   * A key is published this long before it signs, so that whoever keeps a copy of the key set has
   * it by then.
   */
  readonly publishAheadMs: number;
  /** What a key signed may be presented for so long after it signed last. */
  readonly verifyAfterMs: number;
}

export interface RotationPlan {
  readonly signing: SigningKey | undefined;
  /** In order of age, the oldest first. */
  readonly kept: readonly SigningKey[];
  /** Whether a successor must be made. */
  readonly needsNew: boolean;
}

/**
 * Which keys there are to be, and which of them signs. The very first signs at once; each later one
 * when it has been published for long enough, and its predecessor stays until nothing that it
 * signed is valid any more.
 */
export function planRotation(keys: readonly SigningKey[], nowMs: number, policy: RotationPolicy): RotationPlan {
  const { rotateAfterMs, publishAheadMs, verifyAfterMs } = policy;
  const byAge = keys.toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.kid < b.kid ? -1 : 1));
  const signsFromMs = (index: number): number => {
    const key = byAge[index];
    if (key === undefined) return Number.POSITIVE_INFINITY;
    return index === 0 ? key.createdAtMs : key.createdAtMs + publishAheadMs;
  };
  const signingIndex = byAge.findLastIndex((_, index) => signsFromMs(index) <= nowMs);
  // A clock that was set back must not leave the gateway without a key.
  const signing = byAge[Math.max(0, signingIndex)];
  const kept = byAge.filter((_, index) => nowMs < signsFromMs(index + 1) + verifyAfterMs);
  const newest = byAge.at(-1);
  const needsNew = newest === undefined || nowMs >= newest.createdAtMs + rotateAfterMs - publishAheadMs;
  return { signing, kept, needsNew };
}
