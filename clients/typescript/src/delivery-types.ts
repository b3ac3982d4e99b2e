/** What the registry API says of notifications to channels. These objects are the JSON itself. */

/** Pending, accepted by its receiver, or given up. */
export const deliveryStates = ['pending', 'delivered', 'dead'] as const;

export type DeliveryState = (typeof deliveryStates)[number];

/** A message to a channel, and how far it has come. Times are ISO 8601 with offset. */
export interface DeliveryRecord {
  /** The `webhook-id` that it is sent with, at every attempt. */
  readonly id: string;
  readonly service_name: string;
  readonly channel: string;
  /** `notification`, or what happened to a job, such as `job.failed`. */
  readonly event: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly last_attempt_at: string | null;
  /** Of the last attempt, for people. */
  readonly last_result: string | null;
  readonly created_at: string;
  /** The body, but for its id. */
  readonly payload: Readonly<Record<string, unknown>>;
}

/** Which deliveries to list. */
export interface DeliveryFilter {
  readonly service_name?: string | undefined;
  readonly state?: DeliveryState | undefined;
  /** Largest number of deliveries. */
  readonly limit?: number | undefined;
}

/** Answer of `GET /webhooks/deliveries`, newest first. */
export interface DeliveryList {
  readonly deliveries: readonly DeliveryRecord[];
  readonly total: number;
}

/** Answer of `POST /webhooks/deliveries/{id}/replay`. */
export interface AcceptedReplay {
  readonly status: string;
  readonly id: string;
}
