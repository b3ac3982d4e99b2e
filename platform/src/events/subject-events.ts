import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../clock.ts';
import type { Area } from '../http/operations/operation.ts';
import type { AllowedAddresses } from '../outbound/address-rules.ts';
import type { Idempotency } from '../postgres/idempotency.ts';
import type { Pool } from '../postgres/pool.ts';
import { createPruner } from '../postgres/pruner.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import type { Routes } from '../service/app.ts';
import type { Vault } from '../vault.ts';
import { createPost } from '../webhooks/post.ts';
import { createEventRecorder, type RecordEvents } from './events.ts';
import { createEventReader } from './feed.ts';
import { createFollowers } from './followers.ts';
import { createEventRelay, pruneEvents } from './relay.ts';
import { createSubjectStreams, eventStreamRoute } from './stream-route.ts';
import { createDeliveryRecords, createWebhookQueue } from './webhooks/deliveries.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import { createWebhookSender } from './webhooks/sender.ts';
import { createEndpointRecords } from './webhooks/store.ts';
import type { WebhookRecords } from './webhooks/webhooks.ts';

export interface SubjectEventsDeps {
  /** Throws until the schema is up to date. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  readonly idempotency: Idempotency;
  /** Whose `:admin` sees the webhooks of all. */
  readonly area: Area;
  /** All that there are, such as `message.sent`. */
  readonly types: readonly string[];
  /** Where webhooks may be. */
  readonly addresses: AllowedAddresses;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** What happens to what belongs to a subject, and how it is told (docs/decisions/0372, 0373). */
export interface SubjectEvents {
  readonly recordEvents: RecordEvents;
  readonly routes: readonly Routes[];
  /** To be started after the database. */
  readonly actors: readonly Actor[];
  /** So that the API can close. */
  closeStreams(): void;
}

export function createSubjectEvents(deps: SubjectEventsDeps): SubjectEvents {
  const { pool, vault, idempotency, area, types, addresses, clock, log, metrics } = deps;
  const queue = createWebhookQueue({ pool, vault });
  const sender = createWebhookSender({ queue, post: createPost(addresses), clock, log, metrics });
  const records = {
    ...createEndpointRecords({ pool, vault }),
    ...createDeliveryRecords({ pool, vault }, () => sender.wake()),
  };
  watchFailingEndpoints(metrics, records);
  const reader = createEventReader(pool, vault);
  const followers = createFollowers();
  const streams = createSubjectStreams();
  void new Gauge({
    name: 'rollcall_event_streams',
    help: 'Open streams of events at this replica.',
    registers: [metrics],
    collect() {
      this.set(streams.size);
    },
  });
  let reached: bigint | undefined;

  async function onPosition(position: bigint): Promise<void> {
    const before = reached;
    const { subjects } = followers;
    if (before === undefined) followers.wake(subjects);
    // The database is an older copy of itself: what followers know is not there.
    else if (position < before) streams.endAll();
    else if (subjects.length > 0) followers.wake(await reader.subjectsAfter(before.toString(), subjects));
    reached = position;
    sender.wake();
  }

  return {
    recordEvents: createEventRecorder(vault, types),
    routes: [
      webhookRoutes({ records, idempotency, area, types, addresses, clock }),
      eventStreamRoute({ reader, followers, streams, log }),
    ],
    actors: [
      createPruner({ name: 'events', prune: (limit) => pruneEvents(pool(), limit), log }),
      sender,
      createEventRelay({ pool, onPosition, log }),
    ],
    closeStreams: () => streams.closeAll(),
  };
}

/** Of all replicas: what one of them says is enough. */
function watchFailingEndpoints(metrics: Registry, records: Pick<WebhookRecords, 'countFailing'>): void {
  void new Gauge({
    name: 'rollcall_webhook_endpoints_failing',
    help: 'Webhook endpoints of subjects that have taken nothing for an hour, and are not disabled; of all replicas.',
    registers: [metrics],
    async collect() {
      // Without the database nothing is known of it, and the other metrics are still to be had.
      const count = await records.countFailing().catch(() => undefined);
      if (count !== undefined) this.set(count);
    },
  });
}
