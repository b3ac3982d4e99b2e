/** A status condition (Kubernetes API conventions, "Typical status properties"). */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/**
 * Sets one condition among others. Its transition time moves only when its status changes.
 *
 * @param at RFC 3339 time of the change.
 */
export function setCondition(
  conditions: readonly Condition[],
  next: Omit<Condition, 'lastTransitionTime'>,
  at: string,
): Condition[] {
  const previous = conditions.find((condition) => condition.type === next.type);
  const lastTransitionTime = previous?.status === next.status ? previous.lastTransitionTime : at;
  const others = conditions.filter((condition) => condition.type !== next.type);
  return [...others, { ...next, lastTransitionTime }];
}
