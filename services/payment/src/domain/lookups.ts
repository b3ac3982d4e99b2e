import { backoffMs } from '@rollcall/platform/retry.ts';

/** The first lookup of an outcome comes so long after the call, and the next twice as long after that. */
const FIRST_MS = 60_000;
const LONGEST_MS = 6 * 3_600_000;

/** Then a person has to decide: providers know every outcome by now. */
const GIVE_UP_AFTER_MS = 72 * 3_600_000;
/** A bank may take weeks for what the provider says it works on. */
const GIVE_UP_ACCEPTED_AFTER_MS = 30 * 24 * 3_600_000;

/** A call whose outcome is not known: of a payment, or of a refund. */
export interface OpenOutcome {
  /** When the provider was called. */
  readonly since: Temporal.Instant;
  /** How often its outcome was looked up since, in vain. */
  readonly lookUps: number;
  /** Of the last one. */
  readonly lastLookUpAt: Temporal.Instant | undefined;
  /** The provider has it, and has said that it is not over. */
  readonly isAccepted: boolean;
}

export type LookUpDecision =
  | { readonly kind: 'wait'; readonly until: Temporal.Instant }
  | { readonly kind: 'look_up' }
  /** To `needs_review`: every unknown outcome ends. */
  | { readonly kind: 'give_up' };

/** When a provider is asked what became of a call. */
export function planLookUp(outcome: OpenOutcome, now: Temporal.Instant): LookUpDecision {
  const { since, lookUps, lastLookUpAt, isAccepted } = outcome;
  const giveUpAfterMs = isAccepted ? GIVE_UP_ACCEPTED_AFTER_MS : GIVE_UP_AFTER_MS;
  if (Temporal.Instant.compare(now, since.add({ milliseconds: giveUpAfterMs })) >= 0 && lookUps > 0) {
    return { kind: 'give_up' };
  }
  // Without jitter: planned twice, it is the same.
  const delayMs = backoffMs(lookUps, { baseMs: FIRST_MS, maxMs: LONGEST_MS, random: () => 1 });
  const next = (lastLookUpAt ?? since).add({ milliseconds: delayMs });
  return Temporal.Instant.compare(now, next) >= 0 ? { kind: 'look_up' } : { kind: 'wait', until: next };
}

/** Providers that know our keys do so for a day. */
const KEY_KNOWN_MS = 23 * 3_600_000;
/** So often a provider is called at most where no call had effect: with a key, and without one. */
const MOST_CALLS = { keyed: 10, unkeyed: 3 };

/** A lookup of a call that the provider has not accepted, and that was not found. */
interface NothingFound {
  /** `absent`: it surely was not made. */
  readonly found: 'absent' | 'unknown';
  /** How often the provider was called. */
  readonly calls: number;
  /** Whether the provider knows our key, so that one that is made again is the same. */
  readonly isKeyed: boolean;
  /** When the provider was called; with a key, for the first time. */
  readonly since: Temporal.Instant;
}

/** Whether a call is made again, is over without effect, or is looked up later. */
export function planAfterNothing(
  { found, calls, isKeyed, since }: NothingFound,
  now: Temporal.Instant,
): 'call' | 'fail' | 'wait' {
  const isLast = calls >= (isKeyed ? MOST_CALLS.keyed : MOST_CALLS.unkeyed);
  if (found === 'absent') return isLast ? 'fail' : 'call';
  const isKeyKnown = isKeyed && Temporal.Instant.compare(now, since.add({ milliseconds: KEY_KNOWN_MS })) < 0;
  return isKeyKnown && !isLast ? 'call' : 'wait';
}
