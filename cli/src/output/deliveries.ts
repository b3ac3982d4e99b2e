import type { DeliveryRecord } from '@rollcall/client/delivery-types.ts';
import { formatAge } from './age.ts';
import { formatFacts, formatTable } from './table.ts';

export function formatDeliveries(deliveries: readonly DeliveryRecord[], now: Date): string {
  const rows = deliveries.map((delivery) => [
    delivery.id,
    delivery.service_name,
    delivery.channel,
    delivery.event,
    delivery.state,
    String(delivery.attempts),
    formatAge(delivery.created_at, now),
    delivery.last_result ?? '',
  ]);
  return formatTable(['DELIVERY', 'SERVICE', 'CHANNEL', 'EVENT', 'STATE', 'ATTEMPTS', 'AGE', 'RESULT'], rows);
}

export function formatDelivery(delivery: DeliveryRecord, now: Date): string {
  const withAge = (timestamp: string | null) =>
    timestamp === null ? '' : `${timestamp} (${formatAge(timestamp, now)} ago)`;
  const { message } = delivery.payload;
  return formatFacts({
    Delivery: delivery.id,
    Service: delivery.service_name,
    Channel: delivery.channel,
    Event: delivery.event,
    State: delivery.state,
    Attempts: String(delivery.attempts),
    Result: delivery.last_result ?? '',
    Message: typeof message === 'string' ? message : '',
    Created: withAge(delivery.created_at),
    'Last attempt': withAge(delivery.last_attempt_at),
  });
}
