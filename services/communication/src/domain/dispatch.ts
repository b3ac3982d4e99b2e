import { backoffMs } from '@rollcall/platform/retry.ts';
import { causesOfMessage, type RefusalCause, type SendOutcome, type Suppression } from './ports.ts';
import type { MessageEvent } from './states.ts';

/** A provider of a channel. Priority and weight mean what they do in SRV records (RFC 2782). */
export interface RouteEntry {
  readonly provider: string;
  /** Lower ones first. */
  readonly priority: number;
  /** Its share among those of the same priority; above 0. */
  readonly weight: number;
}

/** Which providers a channel has, for each country where they differ. */
export interface RouteTable {
  readonly entries: readonly RouteEntry[];
  /** By country of ISO 3166-1, for SMS. */
  readonly byCountry?: Readonly<Record<string, readonly RouteEntry[]>>;
}

/** @param country of the recipient's number; undefined where it has none. */
export function routeFor({ entries, byCountry = {} }: RouteTable, country: string | undefined): readonly RouteEntry[] {
  return country !== undefined && Object.hasOwn(byCountry, country) ? (byCountry[country] ?? entries) : entries;
}

interface Situation {
  /**
   * In how many milliseconds a provider may be called, by its breaker, its rate and what it asked
   * for; 0: now.
   */
  readonly availableInMs: (provider: string) => number;
  /** Those that surely took nothing since the message last waited. */
  readonly tried: ReadonlySet<string>;
  /** Random source in [0, 1). */
  readonly random: () => number;
}

/** `none-left`: each was tried. `none`: there is none. */
export type Choice = { readonly provider: string } | 'none-left' | 'none';

/** Pure. Which provider is called next: where none is available, the one that will be first. */
export function chooseProvider(route: readonly RouteEntry[], { availableInMs, tried, random }: Situation): Choice {
  if (route.length === 0) return 'none';
  const left = route.filter(({ provider }) => !tried.has(provider));
  if (left.length === 0) return 'none-left';
  // Asked once each: time goes on meanwhile.
  const waits = left.map(({ provider }) => Math.max(0, availableInMs(provider)));
  const soonest = Math.min(...waits);
  const possible = left.filter((_, index) => waits[index] === soonest);
  const first = Math.min(...possible.map(({ priority }) => priority));
  const [chosen] = pickByWeight(
    possible.filter(({ priority }) => priority === first),
    random(),
  );
  return chosen === undefined ? 'none-left' : { provider: chosen.provider };
}

function pickByWeight(entries: readonly RouteEntry[], at: number): readonly RouteEntry[] {
  const total = entries.reduce((sum, { weight }) => sum + weight, 0);
  let passed = 0;
  return entries.filter(({ weight }) => {
    passed += weight;
    return passed > at * total;
  });
}

/** How long a message is tried, and how often. */
export interface RetryPolicy {
  /** The first pause, before jitter; each is twice as long, up to the longest. */
  readonly baseMs: number;
  readonly maxMs: number;
}

export const defaultRetryPolicy: RetryPolicy = { baseMs: 15_000, maxMs: 3_600_000 };

interface AttemptEnd {
  readonly outcome: SendOutcome;
  /** Whether another provider is there that was not tried since the last pause. */
  readonly hasOther: boolean;
  /** How often the message has waited so far. */
  readonly pauses: number;
  readonly now: Date;
  /** After this it is worth nothing any more. */
  readonly expiresAt: Date;
  readonly policy: RetryPolicy;
  readonly random: () => number;
}

/** What becomes of a message after an attempt. */
export interface NextStep {
  readonly event: Extract<MessageEvent, 'accepted' | 'refused' | 'postponed' | 'lost' | 'given-up'>;
  /** Before the next attempt; with `postponed` alone. 0: at another provider, at once. */
  readonly delayMs?: number;
  /** A code, without anything of the recipient. */
  readonly reason?: string;
  readonly suppress?: Suppression;
}

/**
 * Pure. Whether a message is tried again. It goes to another provider only where this one surely took
 * nothing. A message that expires says nothing bad of its recipient, so nobody is suppressed by it.
 */
export function stepAfter(end: AttemptEnd): NextStep {
  const { outcome } = end;
  if (outcome.outcome === 'accepted') return { event: 'accepted' };
  if (outcome.outcome === 'unknown') return { event: 'lost', reason: outcome.reason };
  if (outcome.outcome === 'failed' || mayBeTaken(outcome.cause, end)) return tryAgain(end, outcome);
  const { reason, suppress } = outcome;
  return { event: 'refused', reason, ...(suppress !== undefined && { suppress }) };
}

/** Whether a message that was refused may yet be taken: there once our account is in order, or by another provider. */
function mayBeTaken(cause: RefusalCause, { hasOther }: AttemptEnd): boolean {
  return cause === 'size' ? hasOther : !causesOfMessage.has(cause);
}

interface NotTaken {
  readonly reason: string;
  readonly retryAfterMs?: number;
}

function tryAgain(end: AttemptEnd, { reason, retryAfterMs = 0 }: NotTaken): NextStep {
  const { hasOther, pauses, now, expiresAt, policy, random } = end;
  const delayMs = hasOther ? 0 : Math.max(backoffMs(pauses, { ...policy, random }), retryAfterMs);
  const isTooLate = now.getTime() + delayMs >= expiresAt.getTime();
  return isTooLate ? { event: 'given-up', reason: `expired: ${reason}` } : { event: 'postponed', delayMs, reason };
}

interface UnknownAttempt {
  /** Of the provider that was called. */
  readonly idempotentForMs: number | undefined;
  /** Since its first call. */
  readonly ageMs: number;
  /** How often that was tried since. */
  readonly pauses: number;
  readonly policy: RetryPolicy;
  readonly random: () => number;
}

/**
 * Pure. When the call is made again, by which it is found out whether the provider took the message.
 *
 * @returns milliseconds; undefined where it might send twice: a notification of the provider, or
 * the sender, decides.
 */
export function repeatDelay(attempt: UnknownAttempt): number | undefined {
  const { idempotentForMs = 0, ageMs, pauses, policy, random } = attempt;
  const delayMs = backoffMs(pauses, { ...policy, random });
  return ageMs + delayMs < idempotentForMs ? delayMs : undefined;
}
