import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { SubscriptionState } from '../../domain/subscription-states.ts';
import type { SubscriptionRecord } from '../domain/subscriptions.ts';

interface Change {
  readonly before: SubscriptionRecord;
  readonly after: SubscriptionRecord;
}

/** A move is told by the state that it leads to. */
export async function tellOfChange(client: PoolClient, recordEvents: RecordEvents, { before, after }: Change) {
  const { state } = after.subscription;
  const isMoved = state !== before.subscription.state;
  const isEnding = after.subscription.cancelAtPeriodEnd !== before.subscription.cancelAtPeriodEnd;
  if (isMoved) await tellOf(client, recordEvents, { record: after, type: `subscription.${state}` });
  else if (isEnding) await tellOf(client, recordEvents, { record: after, type: 'subscription.updated' });
}

export type SubscriptionEventType = `subscription.${'created' | 'plan_changed' | 'updated' | SubscriptionState}`;

interface Told {
  readonly record: SubscriptionRecord;
  readonly type: SubscriptionEventType;
}

export async function tellOf(client: PoolClient, recordEvents: RecordEvents, { record, type }: Told): Promise<void> {
  const { subject, customerId, planId, planVersion, subscription } = record;
  const { id, state, cancelAtPeriodEnd } = subscription;
  const data = { id, status: state, customerId, planId, planVersion, cancelAtPeriodEnd };
  await recordEvents(client, [{ subject, type, resourceId: id, data }]);
}
