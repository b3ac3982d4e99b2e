import { formatAge } from './age.ts';
import { formatFacts, formatTable } from './table.ts';

/** A message of the communication service, as far as it is shown. */
export interface MessageRecord {
  readonly id: string;
  readonly channel: string;
  readonly status: string;
  readonly provider: string | null;
  readonly to: string;
  readonly reason: string | null;
  readonly createdAt: string;
  readonly sentAt: string | null;
}

/** One message, with each call of a provider. */
export interface MessageDetails extends MessageRecord {
  readonly attempts: readonly {
    readonly number: number;
    readonly provider: string;
    readonly status: string;
    readonly reason: string | null;
    readonly startedAt: string;
  }[];
}

export function formatMessages(messages: readonly MessageRecord[], now: Date): string {
  const rows = messages.map(({ id, channel, to, status, provider, createdAt, reason }) => [
    id,
    channel,
    to,
    status,
    provider ?? '',
    formatAge(createdAt, now),
    reason ?? '',
  ]);
  return formatTable(['MESSAGE', 'CHANNEL', 'TO', 'STATUS', 'PROVIDER', 'AGE', 'REASON'], rows);
}

export function formatMessage(message: MessageDetails, now: Date): string {
  const { id, channel, to, status, reason, provider, createdAt, sentAt, attempts } = message;
  const withAge = (at: string | null) => (at === null ? '' : `${at} (${formatAge(at, now)} ago)`);
  const facts = formatFacts({
    Message: id,
    Channel: channel,
    To: to,
    Status: status,
    Reason: reason ?? '',
    Provider: provider ?? '',
    Created: withAge(createdAt),
    Sent: withAge(sentAt),
  });
  if (attempts.length === 0) return facts;
  const rows = attempts.map((attempt) => [
    String(attempt.number),
    attempt.provider,
    attempt.status,
    formatAge(attempt.startedAt, now),
    attempt.reason ?? '',
  ]);
  return `${facts}\n${formatTable(['ATTEMPT', 'PROVIDER', 'STATUS', 'AGE', 'REASON'], rows)}`;
}
