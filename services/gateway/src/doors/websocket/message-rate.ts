export interface MessageRate {
  /** Allowed on average. */
  readonly perSecond: number;
  /** Allowed at once. */
  readonly burst: number;
}

/** Counts what a client sends: a bucket of tokens that refills steadily. */
export interface RateMeter {
  /** @returns whether one more is within the rate. */
  admit(nowMs: number): boolean;
}

export function createRateMeter({ perSecond, burst }: MessageRate): RateMeter {
  let left = burst;
  let at: number | undefined;
  return {
    admit(nowMs) {
      left = Math.min(burst, left + ((nowMs - (at ?? nowMs)) * perSecond) / 1000);
      at = nowMs;
      if (left < 1) return false;
      left -= 1;
      return true;
    },
  };
}
