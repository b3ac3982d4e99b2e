import type { Clock } from '@rollcall/platform/clock.ts';
import type { SendOutcome } from '../domain/ports.ts';
import { type Quota, type QuotaStore, quotaStates, usedUpForMs } from '../domain/quotas.ts';

/** Where a period ended while it was asked about. */
const AGAIN_MS = 1000;
/** Between taking a message's part of a quota and its call: what prepares it. */
const PREPARED_WITHIN_MS = 60_000;

/** What keeps a provider from being given more than its quota. */
export interface QuotaGate {
  /** As this replica knows it; 0: it may be given more. */
  usedUpForMs(): number;
  /** Counts a message. @returns whether it may go. */
  take(): Promise<boolean>;
  /** A message that was counted surely was not given. Where that cannot be written down, it stays counted. */
  giveBack(): Promise<void>;
}

interface QuotaGateOptions {
  readonly provider: string;
  readonly quota: Quota;
  readonly quotas: QuotaStore;
  readonly clock: Clock;
  /** What a call takes at most. */
  readonly callMs: number;
}

/** Without a quota nothing is asked of the store. */
export function createQuotaGate({ provider, quota, quotas, clock, callMs }: QuotaGateOptions): QuotaGate {
  let usedUpUntilMs = Number.NEGATIVE_INFINITY;
  if (quota.perHour === undefined && quota.perDay === undefined)
    return { usedUpForMs: () => 0, take: async () => true, giveBack: async () => {} };
  return {
    usedUpForMs: () => Math.max(0, usedUpUntilMs - clock.monotonicMs()),
    async take() {
      if (await quotas.take(provider, quota)) return true;
      const uses = (await quotas.usesOf([provider])).get(provider);
      const forMs = uses === undefined ? 0 : usedUpForMs(quotaStates(quota, uses));
      usedUpUntilMs = clock.monotonicMs() + Math.max(AGAIN_MS, forMs);
      return false;
    },
    async giveBack() {
      usedUpUntilMs = Number.NEGATIVE_INFINITY;
      try {
        await quotas.giveBack(provider, callMs + PREPARED_WITHIN_MS);
      } catch {
        // Rather one too few than one too many.
      }
    },
  };
}

/** Pure. Whether a provider surely took nothing of a message, not even for copies. */
export function isUnused(outcome: SendOutcome): boolean {
  return outcome.outcome === 'failed' && outcome.copied === undefined;
}
