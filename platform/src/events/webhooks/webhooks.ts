import type { ListPage, NewestPage } from '../../lists.ts';
import type { OutboxState } from '../../queues/outbox-states.ts';

/** Whose things a caller sees: those of a subject, or of all where undefined. */
export type Owner = string | undefined;

/** By its owner; its receiver said that it is gone (410); or it failed for days. */
export type DisabledReason = 'owner' | 'gone' | 'failing';

/** What its owner decides of an endpoint. */
export interface EndpointSettings {
  readonly url: string;
  /** Types of events, `<kind>.*` or `*`. */
  readonly eventTypes: readonly string[];
  readonly description: string | null;
}

/** The secret before the last rotation: receivers that check by it are still right. */
interface PreviousSecret {
  readonly secret: string;
  /** A date-time. */
  readonly until: string;
  /** Of the rotation: who repeats the call has made it. */
  readonly rotationId: string;
}

/** Where a subject is told of its events. */
export interface WebhookEndpoint extends EndpointSettings {
  readonly id: string;
  /** What is sent is signed with; nobody but its owner sees it, once. */
  readonly secret: string;
  readonly previous?: PreviousSecret;
  /** null: it is enabled. */
  readonly disabledReason: DisabledReason | null;
  readonly createdAt: Date;
}

interface Rotation {
  /** The same where the call is repeated. */
  readonly id: string;
  readonly secret: string;
  /** A date-time, until which what is sent is signed with the secret of before, too. */
  readonly previousUntil: string;
}

export type NewEndpoint = Pick<WebhookEndpoint, 'id' | 'secret'> & EndpointSettings & { readonly subject: string };

interface EndpointChange extends Partial<EndpointSettings> {
  readonly enabled?: boolean;
}

/** One event on its way to one endpoint. */
export interface WebhookDelivery {
  readonly id: string;
  readonly endpointId: string;
  /** The `webhook-id` that it is sent with, each time. */
  readonly eventId: string;
  readonly eventType: string;
  readonly state: OutboxState;
  /** Since it was last asked for. */
  readonly attempts: number;
  readonly lastAttemptAt: Date | null;
  readonly lastResult: string | null;
  /** null: never. */
  readonly nextAttemptAt: Date | null;
  readonly createdAt: Date;
}

interface DeliveryQuery {
  readonly owner: Owner;
  readonly endpointId: string | undefined;
  readonly eventId: string | undefined;
  readonly state: OutboxState | undefined;
  readonly page: ListPage;
}

/** Endpoints and deliveries as the API needs them. */
export interface WebhookRecords {
  /**
   * Stores an endpoint, unless it is there already.
   *
   * @returns the one that is there; undefined where the subject has as many as it may have.
   */
  create(endpoint: NewEndpoint): Promise<WebhookEndpoint | undefined>;
  find(id: string, owner: Owner): Promise<WebhookEndpoint | undefined>;
  list(owner: Owner, page: ListPage): Promise<NewestPage<WebhookEndpoint>>;
  /** @returns undefined where there is none. */
  change(id: string, owner: Owner, change: EndpointChange): Promise<WebhookEndpoint | undefined>;
  /** Gives it another secret. @returns undefined where there is none. */
  rotate(id: string, owner: Owner, rotation: Rotation): Promise<WebhookEndpoint | undefined>;
  /** Of all subjects: how many have taken nothing for an hour, and are not disabled. */
  countFailing(): Promise<number>;
  /** Forgets it with its deliveries. @returns whether there was one. */
  remove(id: string, owner: Owner): Promise<boolean>;
  listDeliveries(query: DeliveryQuery): Promise<NewestPage<WebhookDelivery>>;
  findDelivery(id: string, owner: Owner): Promise<WebhookDelivery | undefined>;
  /** Sends an event to one endpoint that nobody else is told of. @param id of it. @returns undefined where there is none. */
  sendTest(id: string, endpointId: string, owner: Owner): Promise<WebhookDelivery | undefined>;
  /** Sends it now, and as often as a new one where that fails. @returns undefined where there is none. */
  replay(id: string, owner: Owner): Promise<WebhookDelivery | undefined>;
}

/** An endpoint that something is due for. */
export type DueEndpoint = Pick<WebhookEndpoint, 'id' | 'url' | 'secret' | 'previous'>;

/** What is to be posted. */
export interface DueDelivery {
  readonly id: string;
  /** Before this one. */
  readonly attempts: number;
  readonly eventId: string;
  /** The same bytes each time. */
  readonly body: string;
}

/** What became of an attempt, as the delivery has it from then on. */
export interface DeliveryOutcome {
  readonly state: OutboxState;
  /** Until the next attempt; undefined: there is none. */
  readonly retrySeconds: number | undefined;
  readonly result: string;
}

/** What a round of attempts says of an endpoint. */
export interface RoundOutcome {
  readonly isGone: boolean;
  readonly hasSucceeded: boolean;
  readonly hasFailed: boolean;
  /** Until anything else is sent there. */
  readonly pauseSeconds: number;
}

/** Endpoints and deliveries as the sender needs them. */
export interface WebhookQueue {
  /** Takes endpoints that something is due for: nobody else gets them until {@link endRound}, or for a minute. */
  takeEndpoints(limit: number): Promise<readonly DueEndpoint[]>;
  dueDeliveries(endpointId: string, limit: number): Promise<readonly DueDelivery[]>;
  settle(delivery: DueDelivery, outcome: DeliveryOutcome): Promise<void>;
  /** @returns why the endpoint is disabled now; null: it is not. */
  endRound(endpointId: string, outcome: RoundOutcome): Promise<DisabledReason | null>;
}
