import type { Clock } from '@rollcall/platform/clock.ts';
import { backoffMs } from '@rollcall/platform/retry.ts';
import type { OnNotificationRefused } from '@rollcall/platform/webhooks/refused-notifications.ts';
import type { Channel, Suppressions } from './messages.ts';
import type { ProviderReport } from './ports.ts';
import { reasonOfReport } from './reasons.ts';
import { foldedRecipient } from './recipients.ts';
import type { Receipt } from './states.ts';

/** A message that a provider reports of. */
interface ReportedMessage {
  readonly id: string;
  readonly subject: string;
  readonly channel: Channel;
  readonly to: string;
  /** Number of the call that the report is about. */
  readonly attempt: number;
}

/** Messages, as providers report of them. */
export interface ReportedMessages {
  /** By our id, else by the provider's; only what that provider was called for. */
  find(provider: string, ids: Pick<ProviderReport, 'messageId' | 'providerId'>): Promise<ReportedMessage | undefined>;
  /** The last message of each subject to a recipient, by that provider. */
  findLast(provider: string, recipient: string): Promise<readonly ReportedMessage[]>;
  receive(message: ReportedMessage, receipt: Receipt, reason: string | undefined): Promise<void>;
}

/** A report that is to be worked on. */
export interface DueReport {
  readonly id: string;
  readonly provider: string;
  readonly report: ProviderReport;
  readonly tries: number;
  readonly receivedAt: Date;
}

/** What was reported. */
export interface ReportStore {
  /** Keeps what was not reported before. @returns how many that are. */
  receive(provider: string, body: Uint8Array, reports: readonly ProviderReport[]): Promise<number>;
  take(limit: number): Promise<readonly DueReport[]>;
  putOff(id: string, ms: number): Promise<void>;
  /** @param messageId undefined: no message was found for it. */
  end(id: string, messageId: string | undefined): Promise<void>;
}

export interface ReportDeps {
  readonly store: ReportStore;
  readonly messages: ReportedMessages;
  readonly suppressions: Suppressions;
  readonly onRefused: OnNotificationRefused;
  readonly clock: Clock;
}

/** A report may come before the answer of the provider that names the message. */
const FOUND_WITHIN_MS = 24 * 3_600_000;
const LOOK_AGAIN = { baseMs: 500, maxMs: 3_600_000 };
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Works on a report: moves its message forward, and suppresses who wants nothing more. */
export async function applyReport(
  deps: ReportDeps,
  { id, provider, report, tries, receivedAt }: DueReport,
): Promise<void> {
  const { store, messages, suppressions, onRefused, clock } = deps;
  const { messageId, providerId, receipt, recipient } = report;
  if (messageId === undefined && providerId === undefined)
    return applyToRecipient(deps, { id, provider, report, receivedAt });
  const ids = {
    ...(messageId !== undefined && UUID.test(messageId) && { messageId }),
    ...(providerId !== undefined && { providerId }),
  };
  const message = await messages.find(provider, ids);
  if (message === undefined) {
    const isTooLate = clock.now().getTime() - receivedAt.getTime() >= FOUND_WITHIN_MS;
    if (!isTooLate) return store.putOff(id, backoffMs(tries, LOOK_AGAIN));
    onRefused(provider, 'unmatched');
    return store.end(id, undefined);
  }
  const { subject, channel, to } = message;
  const isOfCopy = recipient !== undefined && foldedRecipient(recipient) !== foldedRecipient(to);
  if (report.suppress !== undefined && !(isOfCopy && report.isUnproven === true)) {
    await suppressions.suppress({
      ...report.suppress,
      subject,
      channel,
      recipient: isOfCopy ? recipient : to,
      messageId: message.id,
    });
  }
  // What becomes of a copy says nothing of the message itself.
  if (receipt !== undefined && !isOfCopy) await messages.receive(message, receipt, reasonOfReport(receipt, report));
  await store.end(id, message.id);
}

/**
 * A recipient has answered that they want nothing more, or messages again. Which subject is meant
 * nobody can tell: it holds for all who wrote to them by that provider.
 */
async function applyToRecipient(
  { store, messages, suppressions }: ReportDeps,
  { id, provider, report, receivedAt }: Pick<DueReport, 'id' | 'provider' | 'report' | 'receivedAt'>,
): Promise<void> {
  const { recipient, suppress, isOptIn = false } = report;
  if (recipient === undefined || (suppress === undefined && !isOptIn)) return store.end(id, undefined);
  const known = await messages.findLast(provider, recipient);
  for (const { id: messageId, subject, channel, to } of known) {
    if (suppress !== undefined) {
      await suppressions.suppress({ ...suppress, subject, channel, recipient: to, messageId });
    } else {
      // Reports are worked on in any order: a STOP that came later holds.
      await suppressions.optIn({ subject, channel, recipient: to, saidAt: receivedAt });
    }
  }
  await store.end(id, known[0]?.id);
}
