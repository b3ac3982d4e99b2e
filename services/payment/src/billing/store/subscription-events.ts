import { isDeepStrictEqual } from 'node:util';
import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { SubscriptionState } from '../../domain/subscription-states.ts';
import type { SubscriptionRecord } from '../domain/subscriptions.ts';

interface Change {
  readonly before: SubscriptionRecord;
  readonly after: SubscriptionRecord;
}

/** A move is told by the state that it leads to; another plan when it holds. */
export async function tellOfChange(client: PoolClient, recordEvents: RecordEvents, { before, after }: Change) {
  const type = typeOf({ before, after });
  if (type !== undefined) await tellOf(client, recordEvents, { record: after, type });
}

function typeOf({ before, after }: Change): SubscriptionEventType | undefined {
  const { state, cancelAtPeriodEnd } = after.subscription;
  if (state !== before.subscription.state) return `subscription.${state}`;
  if (after.planId !== before.planId || after.planVersion !== before.planVersion) return 'subscription.plan_changed';
  const isEnding = cancelAtPeriodEnd !== before.subscription.cancelAtPeriodEnd;
  const isOther = (['pending', 'metadata'] as const).some((name) => !isDeepStrictEqual(after[name], before[name]));
  return isEnding || isOther ? 'subscription.updated' : undefined;
}

export type SubscriptionEventType = `subscription.${'created' | 'plan_changed' | 'updated' | SubscriptionState}`;

interface Told {
  readonly record: SubscriptionRecord;
  readonly type: SubscriptionEventType;
}

export async function tellOf(client: PoolClient, recordEvents: RecordEvents, { record, type }: Told): Promise<void> {
  const { subject, customerId, planId, planVersion, pending, subscription } = record;
  const { id, state, cancelAtPeriodEnd } = subscription;
  const pendingPlanId = pending?.planId ?? null;
  const data = { id, status: state, customerId, planId, planVersion, pendingPlanId, cancelAtPeriodEnd };
  await recordEvents(client, [{ subject, type, resourceId: id, data }]);
}
