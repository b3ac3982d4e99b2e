/** How many messages a provider is given at most, by all replicas; undefined: as many as come. */
export interface Quota {
  readonly perHour: number | undefined;
  /** Days begin at midnight of UTC. */
  readonly perDay: number | undefined;
}

/** What was given to a provider so far, and when it begins anew. */
export interface QuotaUses {
  readonly inHour: number;
  readonly inDay: number;
  readonly hourEndsInMs: number;
  readonly dayEndsInMs: number;
}

/** Where the messages are counted that providers with a quota are given. */
export interface QuotaStore {
  /** Counts one more. @returns whether the quota had it; nothing is counted where it had not. */
  take(provider: string, quota: Quota): Promise<boolean>;
  /**
   * Takes one back that surely was not used.
   *
   * @param withinMs since when at most it was taken. What may be of a period before stays counted.
   */
  giveBack(provider: string, withinMs: number): Promise<void>;
  /** Of each provider, also where nothing was counted yet. */
  usesOf(providers: readonly string[]): Promise<ReadonlyMap<string, QuotaUses>>;
}

/** Pure. A quota with what is used of it. */
export interface QuotaState {
  readonly per: 'hour' | 'day';
  readonly limit: number;
  readonly used: number;
  readonly endsInMs: number;
}

/** Pure. The quotas of a provider with what is used of each. */
export function quotaStates({ perHour, perDay }: Quota, uses: QuotaUses): readonly QuotaState[] {
  const { inHour, inDay, hourEndsInMs, dayEndsInMs } = uses;
  return [
    ...(perHour === undefined ? [] : [{ per: 'hour' as const, limit: perHour, used: inHour, endsInMs: hourEndsInMs }]),
    ...(perDay === undefined ? [] : [{ per: 'day' as const, limit: perDay, used: inDay, endsInMs: dayEndsInMs }]),
  ];
}

/** Pure. In how many milliseconds a provider may be given messages again; 0: now. */
export function usedUpForMs(states: readonly QuotaState[]): number {
  return Math.max(0, ...states.filter(({ used, limit }) => used >= limit).map(({ endsInMs }) => endsInMs));
}
