import { randomUUID } from 'node:crypto';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { isBasic } from '../basic-auth.ts';
import { jsonOf } from '../bodies.ts';
import type { Notification } from '../notifier.ts';
import {
  type IncomingText,
  type SimulationContext,
  type Simulator,
  type SimulatorOptions,
  startSimulator,
} from '../simulator.ts';
import { type BulkSmsText, parseSubmission } from './bulksms-submission.ts';
import { classOf } from './numbers.ts';

/** How long a deduplication id is known: about so long. */
const DEDUPLICATION_MS = 12 * 60 * 60 * 1000;
const INT32_MOST = 2_147_483_647;
const SUBTYPES = ['EXPIRED', 'HANDSET_ERROR', 'BLOCKED', 'NOT_SENT'] as const;
const OUTCOMES = ['SENT', 'UNKNOWN', ...SUBTYPES.map((subtype) => `FAILED.${subtype}`)];

export interface BulkSmsOptions extends SimulatorOptions {
  readonly tokenId?: string;
  readonly tokenSecret?: string;
  /** Where status updates go, with a secret in its path; nowhere when absent. */
  readonly webhookUrl?: string;
  /** How many messages are paid for; any number when absent. */
  readonly credits?: number;
}

interface BulkSmsMessage extends BulkSmsText {
  readonly id: string;
  readonly submissionId: string;
  readonly at: Date;
  /** Such as `DELIVERED` or `FAILED.EXPIRED`: what it comes to. */
  readonly status: string;
}

interface Submission {
  readonly at: Date;
  readonly messages: readonly BulkSmsMessage[];
}

/**
 * The JSON REST API of BulkSMS, by its OpenAPI document.
 * https://www.bulksms.com/developer/json/v1/
 */
export async function startBulkSms(options: BulkSmsOptions = {}): Promise<Simulator> {
  const { tokenId = 'bulksms-token-id', tokenSecret = 'bulksms-token-secret' } = options;
  let { webhookUrl } = options;
  const messages = new Map<string, BulkSmsMessage>();
  const submissions = new Map<number, Submission>();
  return await startSimulator(
    {
      name: 'bulksms',
      routes(app, context) {
        app.addHook('preHandler', async (request, reply) => {
          if (isBasic(request.headers.authorization, tokenId, tokenSecret)) return undefined;
          return await refuse(reply, 401, 'The credentials are not valid');
        });
        addRoutes(app, { ...context, messages, submissions, webhookUrl: () => webhookUrl, credits: options.credits });
      },
      credentials: (url) => ({ baseUrl: url, tokenId, tokenSecret, webhookUrl: webhookUrl ?? null }),
      state: () => ({ messages: [...messages.values()], deduplicationIds: [...submissions.keys()] }),
      reset() {
        messages.clear();
        submissions.clear();
      },
      setWebhook(url) {
        webhookUrl = url;
      },
      incoming: (message) => (webhookUrl === undefined ? undefined : webhookCall(webhookUrl, [received(message)])),
      outcomes: OUTCOMES,
      errorBody: (status) => problem(status, undefined),
      retryDelaysMs: [1000, 10_000, 60_000],
    },
    options,
  );
}

interface BulkSms extends SimulationContext {
  readonly messages: Map<string, BulkSmsMessage>;
  /** By deduplication id. */
  readonly submissions: Map<number, Submission>;
  readonly webhookUrl: () => string | undefined;
  readonly credits: number | undefined;
}

interface SubmissionQuery {
  readonly 'auto-unicode'?: string;
  readonly 'deduplication-id'?: string;
}

function addRoutes(app: FastifyInstance, bulkSms: BulkSms): void {
  const { messages, submissions, clock, credits } = bulkSms;

  app.post<{ Body: Buffer | undefined; Querystring: SubmissionQuery }>('/v1/messages', async (request, reply) => {
    const { 'auto-unicode': autoUnicode, 'deduplication-id': deduplication } = request.query;
    const deduplicationId = deduplication === undefined ? undefined : int32Of(deduplication);
    if (Number.isNaN(deduplicationId)) return await refuse(reply, 400, 'deduplication-id must be a 32-bit integer');
    const known = deduplicationId === undefined ? undefined : submissions.get(deduplicationId);
    if (known !== undefined && clock.now().getTime() - known.at.getTime() < DEDUPLICATION_MS) {
      return await reply.code(201).send(known.messages.map((message) => resource(message, 'ACCEPTED')));
    }
    let texts: readonly BulkSmsText[];
    try {
      texts = parseSubmission(jsonOf(request.body ?? Buffer.alloc(0)), autoUnicode === 'true');
    } catch (error) {
      return await refuse(reply, 400, errorMessage(error));
    }
    if (credits !== undefined && messages.size + texts.length > credits) {
      return await refuse(reply, 403, 'The account has not enough credits');
    }
    const submission = accept(texts, bulkSms);
    if (deduplicationId !== undefined) submissions.set(deduplicationId, submission);
    await bulkSms.notify(request, statusUpdates(submission, bulkSms.webhookUrl()));
    return await reply.code(201).send(submission.messages.map((message) => resource(message, 'ACCEPTED')));
  });

  app.get<{ Params: { id: string } }>('/v1/messages/:id', async (request, reply) => {
    const message = messages.get(request.params.id);
    return message === undefined ? await refuse(reply, 404, 'There is no such message') : resource(message);
  });

  app.get<{ Querystring: { filter?: string } }>('/v1/messages', async (request, reply) => {
    const clauses = [...new URLSearchParams(request.query.filter ?? '')];
    const unknown = clauses.find(([name]) => !FILTERS.has(name));
    if (unknown !== undefined) return await refuse(reply, 400, `The filter field ${unknown[0]} is not known`);
    return [...messages.values()]
      .filter((message) => clauses.every(([name, value]) => FILTERS.get(name)?.(message) === value))
      .toReversed()
      .map((message) => resource(message));
  });
}

const FILTERS: ReadonlyMap<string, (message: BulkSmsMessage) => string | undefined> = new Map([
  ['type', () => 'SENT'],
  ['submission.id', ({ submissionId }: BulkSmsMessage) => submissionId],
  ['userSuppliedId', ({ userSuppliedId }: BulkSmsMessage) => userSuppliedId],
]);

function accept(texts: readonly BulkSmsText[], { messages, clock, outcomeOf }: BulkSms): Submission {
  const at = clock.now();
  const submissionId = `1-${randomUUID()}`;
  const accepted = texts.map((text): BulkSmsMessage => {
    const number = `+${text.to}`;
    const status = classOf(number) === 'mobile' ? (outcomeOf(number) ?? 'DELIVERED') : 'FAILED.NOT_SENT';
    return { ...text, id: randomUUID(), submissionId, at, status };
  });
  for (const message of accepted) messages.set(message.id, message);
  return { at, messages: accepted };
}

/** As a webhook with `invokeOption` MANY gets them: up to ten messages in a request. */
function statusUpdates({ messages }: Submission, webhookUrl: string | undefined): readonly Notification[] {
  if (webhookUrl === undefined) return [];
  const steps = messages.map((message) => {
    const { status, deliveryReports } = message;
    const isFailure = status.startsWith('FAILED');
    if (deliveryReports === 'NONE' || (deliveryReports === 'ERRORS' && !isFailure)) return [];
    const way =
      deliveryReports === 'ALL' && status !== 'FAILED.NOT_SENT' && status !== 'SENT' ? ['SENT', status] : [status];
    return way.map((step) => resource(message, step));
  });
  const rounds = [0, 1].map((round) => steps.flatMap((way) => way.slice(round, round + 1)));
  return rounds.flatMap((round) => chunksOfTen(round).map((chunk) => webhookCall(webhookUrl, chunk)));
}

function webhookCall(url: string, chunk: readonly unknown[]): Notification {
  // Nothing is signed; who forges one does not know the secret in the path.
  return ({ isForged }) => ({
    url: isForged ? `${url}0` : url,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(chunk),
  });
}

/** What somebody wrote: a message of the type RECEIVED. */
function received({ from, text }: IncomingText): unknown {
  return {
    id: randomUUID(),
    type: 'RECEIVED',
    from: from.replace('+', ''),
    to: '27600000001',
    body: text,
    encoding: 'TEXT',
    protocolId: 0,
    messageClass: 0,
    submission: null,
    status: null,
    relatedSentMessageId: null,
    userSuppliedId: null,
  };
}

function chunksOfTen<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  return items.length === 0 ? [] : [items.slice(0, 10), ...chunksOfTen(items.slice(10))];
}

function resource(message: BulkSmsMessage, status = message.status): unknown {
  const { id, to, from, body, encoding, parts, submissionId, at, userSuppliedId } = message;
  const [type = '', subtype] = status.split('.');
  const isSubmitted = type === 'ACCEPTED';
  return {
    id,
    type: 'SENT',
    from: from ?? null,
    to,
    body,
    encoding,
    protocolId: 0,
    messageClass: 2,
    numberOfParts: isSubmitted ? null : parts,
    creditCost: isSubmitted ? null : parts,
    submission: { id: submissionId, date: at.toISOString() },
    status: { id: `${type}.${subtype ?? 'null'}`, type, subtype: subtype ?? null },
    relatedSentMessageId: null,
    userSuppliedId: userSuppliedId ?? null,
  };
}

/** NaN where it is none. */
function int32Of(text: string): number {
  const value = /^-?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return Math.abs(value) <= INT32_MOST ? value : Number.NaN;
}

const PROBLEMS: ReadonlyMap<number, readonly [type: string, title: string]> = new Map([
  [400, ['bad-request', 'Bad Request']],
  [401, ['authentication-failed', 'Authentication Failed']],
  [403, ['credits', 'Insufficient Credits']],
  [404, ['not-found', 'Not Found']],
  [429, ['too-many-requests', 'Too Many Requests']],
  [503, ['service-unavailable', 'Service Unavailable']],
]);

function problem(status: number, detail: string | undefined): unknown {
  const [type, title] = PROBLEMS.get(status) ?? ['internal-server-error', 'Internal Server Error'];
  return { type: `https://developer.bulksms.com/json/v1/errors#${type}`, title, status, detail };
}

async function refuse(reply: FastifyReply, status: number, detail: string): Promise<FastifyReply> {
  return await reply.code(status).send(problem(status, detail));
}
