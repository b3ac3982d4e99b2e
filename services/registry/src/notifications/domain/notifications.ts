import { RegistryError } from '../../common/errors.ts';
import { parseLimit } from '../../common/limit.ts';
import { checkServiceName } from '../../common/validation.ts';
import type { AdmissionDeps } from '../../webhooks/domain/call-admission.ts';
import type { CallProof } from '../../webhooks/domain/call-proof.ts';
import { authorizeCall } from '../../webhooks/domain/webhook-configs.ts';

const LIMIT_DEFAULT = 100;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export type Severity = 'info' | 'warning' | 'error' | 'critical';

/** A message to a channel. It holds neither the URL nor the secret: both are read when it is sent. */
export interface NewDelivery {
  /** Tells a receiver that it has had the message; the same at every attempt. */
  readonly id: string;
  readonly serviceName: string;
  readonly channel: string;
  /** `notification`, or what happened to a job. */
  readonly event: string;
  /** The body, but for the id. `message` in it is for people. */
  readonly payload: DeliveryPayload;
  /** What has the same lane goes to the same host. */
  readonly lane: string;
  readonly createdAt: Date;
}

export type DeliveryPayload = Readonly<Record<string, unknown>> & {
  readonly message: string;
  readonly severity: Severity;
};

/** On its way, taken by its receiver, or given up. */
export const deliveryStates = ['pending', 'delivered', 'dead'] as const;

export type DeliveryState = (typeof deliveryStates)[number];

/** A message to a channel, and how far it has come. */
export interface Delivery extends Omit<NewDelivery, 'lane'> {
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly lastAttemptAt: Date | undefined;
  /** Without URLs and secrets. */
  readonly lastResult: string | undefined;
}

export interface DeliveryQuery {
  readonly serviceName: string | undefined;
  readonly state: DeliveryState | undefined;
  readonly limit: number;
}

/** Something that is told of a job, once. */
interface JobEventKey {
  readonly jobUid: string;
  readonly event: string;
}

export interface DeliveryStore {
  /** Stored durably, each will be sent. @returns false where too many wait for the channel: then nothing is stored. */
  add(delivery: NewDelivery): Promise<boolean>;
  /** What was told of a job before, by {@link tell}. */
  told(jobUid: string): Promise<ReadonlySet<string>>;
  /**
   * Stores the deliveries unless the event was told before; one for whose channel too many wait as given up.
   *
   * @returns false when it was told before.
   */
  tell(event: JobEventKey, deliveries: readonly NewDelivery[]): Promise<boolean>;
  find(id: string): Promise<Delivery | undefined>;
  /** Newest first, and the number of all that match. */
  list(query: DeliveryQuery): Promise<{ readonly deliveries: readonly Delivery[]; readonly total: number }>;
  /**
   * Has it sent once more, with all its attempts, unless it is on its way.
   *
   * @returns false where too many wait for its channel: then nothing has changed.
   */
  replay(id: string): Promise<boolean>;
}

/** What became of one attempt to send a message. */
export interface DeliveryAttempt {
  readonly result: 'delivered' | 'failed' | 'refused';
  /** Without URLs and secrets: it is stored and logged. */
  readonly reason: string;
}

export interface DeliveriesDeps extends AdmissionDeps {
  readonly deliveries: DeliveryStore;
}

/**
 * What was sent to channels, is on its way or was given up, newest first.
 *
 * @param query with `limit` as it stands in the query; 100 when absent.
 * @throws RegistryError INVALID_REQUEST, INVALID_SERVICE_NAME.
 */
export async function listDeliveries(
  { deliveries }: Pick<DeliveriesDeps, 'deliveries'>,
  query: Omit<DeliveryQuery, 'limit'> & { readonly limit: string | undefined },
): Promise<Awaited<ReturnType<DeliveryStore['list']>>> {
  const limit = parseLimit(query.limit) ?? LIMIT_DEFAULT;
  if (query.serviceName !== undefined) checkServiceName(query.serviceName);
  return deliveries.list({ ...query, limit });
}

/**
 * One message to a channel.
 *
 * @throws RegistryError DELIVERY_NOT_FOUND.
 */
export async function readDelivery({ deliveries }: Pick<DeliveriesDeps, 'deliveries'>, id: string): Promise<Delivery> {
  const delivery = UUID.test(id) ? await deliveries.find(id) : undefined;
  if (delivery === undefined) throw new RegistryError('DELIVERY_NOT_FOUND', 'There is no delivery of this id');
  return delivery;
}

/**
 * Has a message sent once more, as the same message, to where its channel leads now.
 *
 * @throws RegistryError DELIVERY_NOT_FOUND, INVALID_SIGNATURE, CHANNEL_FULL.
 */
export async function replayDelivery(deps: DeliveriesDeps, id: string, proof: CallProof): Promise<void> {
  const delivery = await readDelivery(deps, id);
  const admission = await authorizeCall(deps, delivery.serviceName, proof);
  await admission.carryOut(async () => {
    if (!(await deps.deliveries.replay(delivery.id))) throw channelFull(delivery);
  });
}

/** What is answered where too many wait for a channel. */
export function channelFull({ serviceName, channel }: Pick<Delivery, 'serviceName' | 'channel'>): RegistryError {
  const reason = `Too many notifications wait for channel '${channel}' of service '${serviceName}'`;
  return new RegistryError('CHANNEL_FULL', reason);
}
