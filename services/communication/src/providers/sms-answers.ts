import type { ProviderReport } from '../domain/ports.ts';

/** What networks and providers take for the wish to get nothing more. https://help.twilio.com/articles/223134027 */
const STOP_WORDS = new Set(['STOP', 'STOPALL', 'UNSUBSCRIBE', 'CANCEL', 'END', 'QUIT', 'OPTOUT', 'REVOKE']);
/** `YES` is none: it may answer anything. */
const START_WORDS = new Set(['START', 'UNSTOP']);

/** What somebody wrote to us by SMS. */
export interface SmsAnswer {
  /** The same when the provider says it again. */
  readonly id: string;
  /** With or without a plus. */
  readonly from: string;
  readonly text: string;
  /** Where the provider has decided, as `OptOutType` of Twilio. */
  readonly decided?: string | undefined;
}

/**
 * Pure. Whether who wrote wants nothing more, or to get messages again: the same for all providers. The rest of what
 * people write is not for us.
 */
export function reportsOfAnswer({ id, from, text, decided }: SmsAnswer): readonly ProviderReport[] {
  const digits = /^\+?(\d{7,15})$/.exec(from)?.[1];
  if (digits === undefined) return [];
  const recipient = `+${digits}`;
  const word = text.trim().toUpperCase();
  if (decided === 'STOP' || STOP_WORDS.has(word)) {
    return [{ eventKey: `${id}:STOP`, recipient, reason: 'STOP', suppress: { kind: 'opted-out' } }];
  }
  if (decided === 'START' || START_WORDS.has(word)) {
    return [{ eventKey: `${id}:START`, recipient, reason: 'START', isOptIn: true }];
  }
  return [];
}
