import type { RefusalCause, RefusedRecipient, SendOutcome, Suppression } from '../domain/ports.ts';
import { isUnknownAddress, statusCodeOf } from '../domain/smtp-status.ts';

/** What nodemailer says of a failure. */
export interface SmtpFailure {
  readonly code?: string | undefined;
  /** That the server answered to. */
  readonly command?: string | undefined;
  readonly response?: string | undefined;
  readonly responseCode?: number | undefined;
  readonly recipient?: string | undefined;
  /** One for each recipient, where none was taken. */
  readonly rejectedErrors?: readonly SmtpFailure[] | undefined;
}

interface Sending {
  readonly to: string;
  /** Whether the server had begun to get the mail. */
  readonly hasBegun: boolean;
}

/** The server closes the channel, or takes no more for now, such as "sending rate exceeded". */
const SLOWER: ReadonlySet<number> = new Set([421, 454]);
/** SMTP has no word for how long. */
const SLOWER_MS = 1000;

/** What went wrong before there was an answer, of which the mail or the settings are the reason. */
const WITHOUT_ANSWER: Readonly<Record<string, RefusalCause>> = {
  EAUTH: 'credentials',
  EENVELOPE: 'content',
  EMESSAGE: 'content',
};

/** Pure. What a failure means. Of several recipients, one that may yet be taken keeps the mail. */
export function smtpOutcome(failure: SmtpFailure, { to, hasBegun }: Sending): SendOutcome {
  const rejected = failure.rejectedErrors ?? [];
  const decisive =
    rejected.find(({ responseCode }) => !isPermanent(responseCode)) ??
    rejected.find(({ recipient }) => recipient === to) ??
    failure;
  if (saysNo(decisive.responseCode) && failure.code !== 'ETLS') {
    const refusal = refusalOf(decisive);
    if (!isPermanent(decisive.responseCode)) {
      const isBusy = SLOWER.has(decisive.responseCode ?? 0);
      return { outcome: 'failed', reason: refusal.reason, ...(isBusy && { retryAfterMs: SLOWER_MS }) };
    }
    return { outcome: 'refused', ...refusal };
  }
  const cause = failure.response === undefined ? causeWithoutAnswer(failure) : undefined;
  const reason = failure.code ?? 'unknown';
  if (hasBegun) return { outcome: 'unknown', reason };
  return cause === undefined ? { outcome: 'failed', reason } : { outcome: 'refused', cause, reason };
}

/** Before MAIL FROM, nodemailer compares a mail with what the server takes. */
function causeWithoutAnswer({ code = '', command }: SmtpFailure): RefusalCause | undefined {
  return code === 'EMESSAGE' && command === 'MAIL FROM' ? 'size' : WITHOUT_ANSWER[code];
}

/** Whatever else a server says where it ought to say yes or no is no answer. */
function saysNo(responseCode = 0): boolean {
  return responseCode >= 400 && responseCode < 600;
}

/**
 * Pure. What it means that a mail was taken for some of its recipients. While the first one may yet be taken, it is
 * not: they would never get it, and others have their copy.
 *
 * @param rejected one failure for each of the others.
 */
export function partlyTaken(
  rejected: readonly SmtpFailure[],
  { to, recipients, providerId }: { to: string; recipients: readonly string[]; providerId: string },
): SendOutcome {
  const ofFirst = rejected.find(({ recipient }) => recipient === to);
  if (ofFirst !== undefined && !isPermanent(ofFirst.responseCode)) {
    const without = new Set(rejected.map(({ recipient }) => recipient));
    const outcome = smtpOutcome(ofFirst, { to, hasBegun: false });
    return {
      ...outcome,
      ...(outcome.outcome === 'failed' && { copied: recipients.filter((each) => !without.has(each)) }),
    };
  }
  const refusedRecipients = rejected.flatMap(refusedRecipientOf);
  return { outcome: 'accepted', providerId, ...(refusedRecipients.length > 0 && { refusedRecipients }) };
}

function refusedRecipientOf(failure: SmtpFailure): readonly RefusedRecipient[] {
  if (failure.recipient === undefined) return [];
  const { reason, suppress } = refusalOf(failure);
  return [{ address: failure.recipient, reason, ...(suppress !== undefined && { suppress }) }];
}

/** 503: the server lost track of the conversation, and says nothing of the mail. */
function isPermanent(responseCode = 0): boolean {
  return responseCode >= 500 && responseCode < 600 && responseCode !== 503;
}

interface Refusal {
  readonly cause: RefusalCause;
  readonly reason: string;
  readonly suppress?: Suppression;
}

/** RFC 1870, section 6, and RFC 3463, section 3.4. Of a recipient, a plain 552 is of a mailbox that is full. */
function isTooLarge(command: string, responseCode: number | undefined, status: string | undefined): boolean {
  if (status === '5.3.4' || status === '5.2.3' || responseCode === 523) return true;
  return responseCode === 552 && status === undefined && command !== 'RCPT TO';
}

/** Pure. Why a server answered as it did; its words stay out, for they hold addresses. */
function refusalOf({ code, command = '', response = '', responseCode }: SmtpFailure): Refusal {
  const status = statusCodeOf(response);
  const reason = [responseCode, status].filter((part) => part !== undefined).join(' ');
  if (code === 'EAUTH') return { cause: 'credentials', reason };
  if (isTooLarge(command, responseCode, status)) return { cause: 'size', reason };
  if (command === 'DATA') return { cause: 'content', reason };
  // Of us, or by a policy that another server may not have (RFC 3463, section 3.8).
  if (command !== 'RCPT TO' || status?.startsWith('5.7.') === true) return { cause: 'sender', reason };
  const isGone = isUnknownAddress(status);
  return { cause: 'recipient', reason, ...(isGone && { suppress: { kind: 'address-unknown' } }) };
}
