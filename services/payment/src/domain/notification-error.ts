import { CodedError } from '@rollcall/platform/errors.ts';
import type { NotificationRefusal } from '@rollcall/platform/webhooks/refused-notifications.ts';
import type { NotificationFault } from './ports.ts';

const reasons = { FORGED: 'signature', MALFORMED: 'unreadable', UNVERIFIED: 'unverified' } as const;

/** A notification that is not taken. Its message holds nothing of the notification. */
export class NotificationError extends CodedError<NotificationFault> {
  /** For those who run the service. */
  readonly reason: NotificationRefusal;

  constructor(code: NotificationFault, message: string, reason: NotificationRefusal = reasons[code]) {
    super(code, message);
    this.name = 'NotificationError';
    this.reason = reason;
  }
}
