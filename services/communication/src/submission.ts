import type { Idempotency, OnceAnswer } from '@rollcall/platform/postgres/idempotency.ts';
import { type ChannelRequest, readMessage, type SendMessagesDeps, sendMessage } from './domain/sending.ts';
import type { CountCall } from './routes/call-limits.ts';
import { messageRecord } from './schemas/messages.ts';

export interface SubmissionDeps extends SendMessagesDeps {
  readonly idempotency: Idempotency;
  readonly countCall: CountCall;
}

/** A request to send, by whichever door it came. */
export interface Submission {
  readonly subject: string;
  readonly asked: ChannelRequest;
  /** Of idempotency. */
  readonly key: string | undefined;
  /** What paths of faults begin with. */
  readonly root: string;
}

/** What became of a submission. */
export interface Submitted {
  readonly once: OnceAnswer;
  /** What is left of the limit, for the answer. */
  readonly limitHeaders: Readonly<Record<string, string>>;
}

/** The same by every door. */
const OPERATIONS = { email: 'sendEmail', sms: 'sendSMS', push: 'sendPush' } as const;

/**
 * Counts a request and accepts it once. A repetition is told how the message is by now.
 *
 * @throws ServiceError RATE_LIMITED, those of acceptance and of keys.
 */
export async function submitMessage(deps: SubmissionDeps, submission: Submission): Promise<Submitted> {
  const { subject, asked, key, root } = submission;
  const limitHeaders = await deps.countCall(asked.channel, subject);
  const call = { subject, operation: OPERATIONS[asked.channel], key, request: asked.request };
  const once = await deps.idempotency.once(call, async (id, isNew) => {
    const message = await sendMessage(deps, { subject, id, isNew, root }, asked);
    return { status: 202, location: `messages/${id}`, body: messageRecord(message) };
  });
  return { once: once.isReplayed ? await asItIsNow(deps, subject, once) : once, limitHeaders };
}

/** The first answer may be of a message that was not sent yet. */
async function asItIsNow(deps: SubmissionDeps, subject: string, once: OnceAnswer): Promise<OnceAnswer> {
  const { id } = once.answer.body;
  if (typeof id !== 'string') return once;
  const message = await readMessage(deps, id, { subject, isAll: false });
  return { ...once, answer: { ...once.answer, body: messageRecord(message) } };
}
