import type { ProviderReport, RefusedRecipient, SendOutcome } from './ports.ts';
import type { Receipt } from './states.ts';
import { type SuppressionReason, suppressionReasons } from './suppressions.ts';

/** Why a message or an attempt is in its state (docs/communication.md). */
export const reasons = [
  ...suppressionReasons,
  'device-gone',
  'address-unknown',
  'opted-out',
  'recipient-refused',
  'content-refused',
  'too-large',
  'sender-refused',
  'credentials-refused',
  'credit-used-up',
  'rate-limited',
  'not-reached',
  'not-taken',
  'not-prepared',
  'no-answer',
  'interrupted',
  'not-delivered',
  'expired',
  'content-dropped',
  'other',
] as const;
export type Reason = (typeof reasons)[number];

/** Why a recipient gets nothing. */
export type SuppressedBy = SuppressionReason | 'device-gone';

/** What is shown: a word of the list, and the code of the provider for who asks its support. */
export interface ShownReason {
  readonly reason: Reason | null;
  readonly detail: string | null;
}

/** Between the word and the code, as they are stored. */
const SEPARATOR = ': ';
const REFUSED_FOR = {
  recipient: 'recipient-refused',
  content: 'content-refused',
  size: 'too-large',
  sender: 'sender-refused',
  credentials: 'credentials-refused',
  credit: 'credit-used-up',
} as const;
const OF_SUPPRESSION = {
  'address-unknown': 'address-unknown',
  'opted-out': 'opted-out',
  complained: 'complaint',
  'token-gone': 'device-gone',
} as const;
/** Codes of Node and undici, and words of our adapters. */
const NOT_REACHED = /^(?:E[A-Z]+|UND_ERR_\w+|aborted|timeout|no session|no access token|unknown)$/;
const RATE_LIMITED = /^(?:421|429|454|smpp (?:20|88))(?: |$)/;

/** Pure. An outcome that has a word of the list before the provider's code. */
export function withReason(outcome: SendOutcome): SendOutcome {
  if (outcome.outcome === 'accepted') return outcome;
  return { ...outcome, reason: joined(wordOf(outcome), outcome.reason) };
}

function wordOf(outcome: Exclude<SendOutcome, { readonly outcome: 'accepted' }>): Reason {
  if (outcome.outcome === 'unknown') return 'no-answer';
  if (outcome.outcome === 'refused')
    return outcome.suppress === undefined ? REFUSED_FOR[outcome.cause] : OF_SUPPRESSION[outcome.suppress.kind];
  if (RATE_LIMITED.test(outcome.reason)) return 'rate-limited';
  return NOT_REACHED.test(outcome.reason) ? 'not-reached' : 'not-taken';
}

/** Pure. Why a provider that took a message did not take it for one of its recipients. */
export function reasonOfCopy({ suppress }: Pick<RefusedRecipient, 'suppress'>): Reason {
  return suppress === undefined ? REFUSED_FOR.recipient : OF_SUPPRESSION[suppress.kind];
}

/** Pure. Why a mail did not reach its recipient, although its provider took it for others. */
export function reasonOfRefused(refused: RefusedRecipient): string {
  return joined(reasonOfCopy(refused), refused.reason);
}

/** Pure. Why a message is in the state that a report leads to; undefined: all is well. */
export function reasonOfReport(
  receipt: Receipt,
  { reason: code, suppress }: Pick<ProviderReport, 'reason' | 'suppress'>,
): string | undefined {
  if (receipt !== 'bounced' && receipt !== 'complained') return undefined;
  const word = suppress !== undefined ? OF_SUPPRESSION[suppress.kind] : 'not-delivered';
  return joined(receipt === 'complained' ? 'complaint' : word, code);
}

function joined(word: Reason, code: string | undefined): string {
  return code === undefined ? word : `${word}${SEPARATOR}${code}`;
}

/** Pure. Of what is stored. */
export function shownReason(stored: string | null | undefined): ShownReason {
  if (stored === null || stored === undefined) return { reason: null, detail: null };
  const [word = '', ...rest] = stored.split(SEPARATOR);
  const reason = reasons.find((each) => each === word);
  if (reason === undefined) return { reason: 'other', detail: stored };
  return { reason, detail: rest.length === 0 ? null : rest.join(SEPARATOR) };
}
