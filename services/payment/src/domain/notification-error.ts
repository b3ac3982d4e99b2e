import { CodedError } from '@rollcall/platform/errors.ts';
import type { NotificationFault } from './ports.ts';

/** A notification that is not taken. Its message holds nothing of the notification. */
export class NotificationError extends CodedError<NotificationFault> {
  constructor(code: NotificationFault, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.name = 'NotificationError';
  }
}
