import { callerOf } from '@rollcall/platform/http/callers.ts';
import { idempotencyHeaders, idempotencyKeyOf, sendOnceAnswer } from '@rollcall/platform/http/idempotency.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Message } from '../domain/messages.ts';
import { awaitsFirstAttempt, type ChannelRequest, readMessage } from '../domain/sending.ts';
import { errorCatalogue } from '../errors.ts';
import { MessageRecord, messageRecord } from '../schemas/messages.ts';
import { emailBody, pushBody, type SendingRules, smsBody } from '../schemas/sending.ts';
import { type SubmissionDeps, submitMessage } from '../submission.ts';

const tags = ['messages'];
const { NO_PROVIDER, RATE_LIMITED, TEMPLATE_NOT_FOUND, TEMPLATE_VARIABLES } = errorCatalogue;
/** SMS and push messages are small. */
const SMALL_BODY_BYTES = 64 * 1024;
const LONGEST_WAIT_SECONDS = 30;
const FIRST_POLL_MS = 25;
const LONGEST_POLL_MS = 500;

const headers = Type.Object({
  ...idempotencyHeaders.properties,
  prefer: Type.Optional(
    Type.String({ maxLength: 256, description: '`wait=N`: answer once the first attempt is over, or after N seconds' }),
  ),
});

export type SendingRoutesDeps = SubmissionDeps & SendingRules;

/** `POST /emails`, `/sms` and `/push`. */
export function sendingRoutes(deps: SendingRoutesDeps): Routes {
  const send = sends(deps);
  const response = { 202: MessageRecord };
  return (app) => {
    app.post(
      '/emails',
      {
        config: { refuses: [TEMPLATE_NOT_FOUND, TEMPLATE_VARIABLES, RATE_LIMITED, NO_PROVIDER] },
        schema: { tags, summary: 'Send a mail', headers, body: emailBody(deps), response },
      },
      (request, reply) => send(request, reply, { channel: 'email', request: request.body }),
    );
    app.post(
      '/sms',
      {
        bodyLimit: SMALL_BODY_BYTES,
        config: { refuses: [RATE_LIMITED, NO_PROVIDER] },
        schema: { tags, summary: 'Send an SMS', headers, body: smsBody(deps), response },
      },
      (request, reply) => send(request, reply, { channel: 'sms', request: request.body }),
    );
    app.post(
      '/push',
      {
        bodyLimit: SMALL_BODY_BYTES,
        config: { refuses: [RATE_LIMITED, NO_PROVIDER] },
        schema: { tags, summary: 'Send a push message to a device', headers, body: pushBody(deps), response },
      },
      (request, reply) => send(request, reply, { channel: 'push', request: request.body }),
    );
  };
}

function sends(deps: SendingRoutesDeps) {
  return async (request: FastifyRequest, reply: FastifyReply, asked: ChannelRequest): Promise<void> => {
    const { subject } = callerOf(request);
    const key = idempotencyKeyOf(request.headers);
    const { once, limitHeaders } = await submitMessage(deps, { subject, asked, key, root: 'body' });
    reply.headers(limitHeaders);
    const seconds = waitSeconds(request.headers['prefer']);
    const id = once.answer.body['id'];
    if (seconds === undefined || typeof id !== 'string') {
      await sendOnceAnswer(reply, once);
      return;
    }
    reply.header('preference-applied', `wait=${seconds}`);
    const message = await whenOver(deps, { id, subject }, seconds);
    await sendOnceAnswer(reply, { ...once, answer: { ...once.answer, body: messageRecord(message) } });
  };
}

/** Of `Prefer` (RFC 7240, section 4.3); undefined: none, or none that is valid. */
function waitSeconds(prefer: string | string[] | undefined): number | undefined {
  const [, digits] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec([prefer ?? ''].flat().join(',')) ?? [];
  return digits === undefined ? undefined : Math.min(Number(digits), LONGEST_WAIT_SECONDS);
}

interface Sent {
  readonly id: string;
  readonly subject: string;
}

/** Another replica may be the one that sends it. */
async function whenOver(deps: SendingRoutesDeps, { id, subject }: Sent, seconds: number): Promise<Message> {
  const untilMs = deps.clock.monotonicMs() + seconds * 1000;
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(2 * pollMs, LONGEST_POLL_MS)) {
    // In this order, the message is no older than what is known of its attempt.
    const attempts = (await deps.store.attempts([id])).get(id) ?? [];
    const message = await readMessage(deps, id, { subject, isAll: false });
    const leftMs = untilMs - deps.clock.monotonicMs();
    if (leftMs <= 0 || !awaitsFirstAttempt(message, attempts)) return message;
    await sleep(Math.min(pollMs, leftMs));
  }
}
