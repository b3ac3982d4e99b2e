import type { RefusalCause, SendOutcome, Suppression } from '../domain/ports.ts';
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
  const cause = WITHOUT_ANSWER[failure.code ?? ''];
  const reason = failure.code ?? 'unknown';
  if (hasBegun) return { outcome: 'unknown', reason };
  return cause === undefined ? { outcome: 'failed', reason } : { outcome: 'refused', cause, reason };
}

/** Whatever else a server says where it ought to say yes or no is no answer. */
function saysNo(responseCode = 0): boolean {
  return responseCode >= 400 && responseCode < 600;
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

/** Pure. Why a server answered as it did; its words stay out, for they hold addresses. */
export function refusalOf({ code, command = '', response = '', responseCode }: SmtpFailure): Refusal {
  const status = statusCodeOf(response);
  const reason = [responseCode, status].filter((part) => part !== undefined).join(' ');
  if (code === 'EAUTH') return { cause: 'credentials', reason };
  // The mail is too large (RFC 3463, section 3.4).
  if (status === '5.3.4' || status === '5.2.3' || command === 'DATA') return { cause: 'content', reason };
  // Of us, or by a policy that another server may not have (RFC 3463, section 3.8).
  if (command !== 'RCPT TO' || status?.startsWith('5.7.') === true) return { cause: 'sender', reason };
  const isGone = isUnknownAddress(status);
  return { cause: 'recipient', reason, ...(isGone && { suppress: { kind: 'address-unknown' } }) };
}
