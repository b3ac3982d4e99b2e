import { backoffMs } from '@rollcall/platform/retry.ts';

/** The first lookup of an outcome comes so long after the call, and the next twice as long after that. */
const FIRST_MS = 60_000;
const LONGEST_MS = 6 * 3_600_000;

/** Then a person has to decide: providers know every outcome by now. */
const GIVE_UP_AFTER_MS = 72 * 3_600_000;

/** A call whose outcome is not known: of a payment, or of a refund. */
export interface OpenOutcome {
  /** When the provider was called. */
  readonly since: Temporal.Instant;
  /** How often its outcome was looked up since, in vain. */
  readonly lookUps: number;
  /** Of the last one. */
  readonly lastLookUpAt: Temporal.Instant | undefined;
}

export type LookUpDecision =
  | { readonly kind: 'wait'; readonly until: Temporal.Instant }
  | { readonly kind: 'look_up' }
  /** To `needs_review`: every unknown outcome ends. */
  | { readonly kind: 'give_up' };

/** When a provider is asked what became of a call. It is never made again meanwhile. */
export function planLookUp({ since, lookUps, lastLookUpAt }: OpenOutcome, now: Temporal.Instant): LookUpDecision {
  if (Temporal.Instant.compare(now, since.add({ milliseconds: GIVE_UP_AFTER_MS })) >= 0 && lookUps > 0) {
    return { kind: 'give_up' };
  }
  // Without jitter: planned twice, it is the same.
  const delayMs = backoffMs(lookUps, { baseMs: FIRST_MS, maxMs: LONGEST_MS, random: () => 1 });
  const next = (lastLookUpAt ?? since).add({ milliseconds: delayMs });
  return Temporal.Instant.compare(now, next) >= 0 ? { kind: 'look_up' } : { kind: 'wait', until: next };
}
