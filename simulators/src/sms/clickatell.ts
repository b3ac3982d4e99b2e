import { randomUUID } from 'node:crypto';
import { isSameSecret } from '@rollcall/platform/webhooks/signatures.ts';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { jsonOf } from '../bodies.ts';
import type { Notification } from '../notifier.ts';
import {
  type IncomingText,
  type SimulationContext,
  type Simulator,
  type SimulatorOptions,
  startSimulator,
} from '../simulator.ts';
import { classOf } from './numbers.ts';

const MOST_MESSAGES = 200;
const MOST_CHARACTERS = 1600;
/** Codes of One API, https://docs.clickatell.com, as the crate `clickatell-api` 0.3.0 lists them. */
const ERRORS = {
  1: 'Invalid or missing integration API key',
  19: 'Internal error - please retry',
  20: 'Insufficient account balance',
  21: 'Payload data is malformed',
  22: 'Maximum messages per request payload exceeded',
  23: 'Invalid or missing parameter',
  24: 'Maximum message content size exceeded',
  25: 'Invalid recipient address',
  26: 'Recipient opted-out',
  27: 'Recipient not available on channel',
  41: 'Resource does not exist',
  43: 'Rate limit exceeded',
} as const;
type ErrorCode = keyof typeof ERRORS;

/** Refused at once, as codes. */
const REFUSALS = [25, 26, 27] as const;
/** What a message comes to where that is not `DEVICE_ACK`, which is delivered. */
const ENDS = [
  'SENT_TO_SUPPLIER',
  'EXPIRED',
  'DELIVERY_FAILURE',
  'RECIPIENT_DOES_NOT_EXIST',
  'STOPPED_BY_USER',
  'UNKNOWN',
] as const;

const Payload = Type.Object({ messages: Type.Array(Type.Unknown(), { minItems: 1 }) });
const Entry = Type.Object({
  channel: Type.Literal('sms'),
  to: Type.String({ minLength: 1 }),
  content: Type.String({ minLength: 1 }),
  from: Type.Optional(Type.String()),
  clientMessageId: Type.Optional(Type.String({ maxLength: 64 })),
  validityPeriod: Type.Optional(Type.Integer({ minimum: 1 })),
  charset: Type.Optional(Type.String()),
});

export interface ClickatellOptions extends SimulatorOptions {
  readonly apiKey?: string;
  /** Where status updates go, with a secret in its path; nowhere when absent. */
  readonly callbackUrl?: string;
  /** How many messages are paid for; any number when absent. */
  readonly credits?: number;
}

interface ClickatellMessage extends Static<typeof Entry> {
  readonly apiMessageId: string;
  readonly status: string;
  readonly at: Date;
}

/** Clickatell's One API, SMS only. */
export async function startClickatell(options: ClickatellOptions = {}): Promise<Simulator> {
  const { apiKey = 'clickatell-api-key==', credits } = options;
  let { callbackUrl } = options;
  const messages = new Map<string, ClickatellMessage>();
  return await startSimulator(
    {
      name: 'clickatell',
      routes(app, context) {
        app.addHook('preHandler', async (request, reply) => {
          if (isSameSecret(apiKey, request.headers.authorization ?? '')) return undefined;
          return await refuse(reply, 401, 1);
        });
        addRoutes(app, { ...context, messages, callbackUrl: () => callbackUrl, credits });
      },
      credentials: (url) => ({ baseUrl: url, apiKey, callbackUrl: callbackUrl ?? null }),
      state: () => ({ messages: [...messages.values()] }),
      reset: () => messages.clear(),
      setWebhook(url) {
        callbackUrl = url;
      },
      incoming: (message) => (callbackUrl === undefined ? undefined : incoming(message, callbackUrl)),
      outcomes: [...REFUSALS.map(String), ...ENDS],
      errorBody: (status) => failure(status === 429 ? 43 : 19),
      retryDelaysMs: [1000, 10_000, 60_000],
    },
    options,
  );
}

interface Clickatell extends SimulationContext {
  readonly messages: Map<string, ClickatellMessage>;
  readonly callbackUrl: () => string | undefined;
  readonly credits: number | undefined;
}

function addRoutes(app: FastifyInstance, clickatell: Clickatell): void {
  const { messages, credits } = clickatell;

  app.post<{ Body: Buffer | undefined }>('/v1/message', async (request, reply) => {
    const payload = jsonOf(request.body ?? Buffer.alloc(0));
    if (!Value.Check(Payload, payload)) return await refuse(reply, 400, 21);
    if (payload.messages.length > MOST_MESSAGES) return await refuse(reply, 400, 22);
    if (credits !== undefined && messages.size + payload.messages.length > credits) {
      return await refuse(reply, 402, 20);
    }
    const results = payload.messages.map((entry) => take(entry, clickatell));
    const taken = results.flatMap(({ message }) => (message === undefined ? [] : [message]));
    for (const message of taken) messages.set(message.apiMessageId, message);
    await clickatell.notify(request, statusUpdates(taken, clickatell.callbackUrl()));
    const status = taken.length === results.length ? 202 : 207;
    return await reply.code(status).send({ messages: results.map(({ answer }) => answer), error: null });
  });

  app.get<{ Params: { id: string } }>('/v1/message/:id', async (request, reply) => {
    const message = messages.get(request.params.id);
    if (message === undefined) return await refuse(reply, 404, 41);
    return { sms: { status: message.status, timestamp: message.at.getTime() } };
  });
}

function take(entry: unknown, { clock, outcomeOf }: Clickatell): { message?: ClickatellMessage; answer: unknown } {
  if (!Value.Check(Entry, entry)) return { answer: refusal(toOf(entry), 23) };
  const number = `+${entry.to}`;
  const outcome = outcomeOf(number);
  const refused = REFUSALS.find((code) => String(code) === outcome);
  if (entry.content.length > MOST_CHARACTERS) return { answer: refusal(entry.to, 24) };
  if (refused !== undefined) return { answer: refusal(entry.to, refused) };
  const found = classOf(number);
  if (found !== 'mobile') return { answer: refusal(entry.to, found === 'invalid' ? 25 : 27) };
  const apiMessageId = randomUUID().replaceAll('-', '');
  const status = ENDS.find((end) => end === outcome) ?? 'DEVICE_ACK';
  const message = { ...entry, apiMessageId, status, at: clock.now() };
  return { message, answer: { apiMessageId, accepted: true, to: entry.to, error: null } };
}

function statusUpdates(taken: readonly ClickatellMessage[], url: string | undefined): readonly Notification[] {
  if (url === undefined) return [];
  return taken.flatMap((message) => {
    const statuses = message.status === 'SENT_TO_SUPPLIER' ? [message.status] : ['SENT_TO_SUPPLIER', message.status];
    return statuses.map((status) => statusUpdate({ ...message, status }, url));
  });
}

/** What somebody wrote, as One API calls it: a mobile originated text. */
function incoming({ from, text }: IncomingText, url: string): Notification {
  const messageId = randomUUID().replaceAll('-', '');
  return callOf(url, (at) => ({
    moText: [
      {
        channel: 'sms',
        messageId,
        relatedMessageId: null,
        from: from.replace('+', ''),
        to: '27600000001',
        timestamp: at.getTime(),
        encoding: 'UTF-8',
        content: text,
      },
    ],
  }));
}

function statusUpdate({ apiMessageId, clientMessageId, status }: ClickatellMessage, url: string): Notification {
  return callOf(url, (at) => ({
    messageStatusUpdate: [
      { channel: 'sms', messageId: apiMessageId, clientMessageId, timestamp: at.getTime(), status },
    ],
  }));
}

function callOf(url: string, eventAt: (at: Date) => unknown): Notification {
  // Nothing is signed; who forges one does not know the secret in the path.
  return ({ at, isForged }) => ({
    url: isForged ? `${url}0` : url,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      integrationId: 'ff8080815f6b0001',
      integrationName: 'Rollcall',
      event: eventAt(at),
    }),
  });
}

function toOf(entry: unknown): string | null {
  const isNamed = typeof entry === 'object' && entry !== null && 'to' in entry && typeof entry.to === 'string';
  return isNamed ? String(entry.to) : null;
}

function refusal(to: string | null, code: ErrorCode): unknown {
  return { apiMessageId: null, accepted: false, to, error: { code, description: ERRORS[code] } };
}

function failure(code: ErrorCode): unknown {
  return { messages: [], error: { code, description: ERRORS[code] } };
}

async function refuse(reply: FastifyReply, status: number, code: ErrorCode): Promise<FastifyReply> {
  return await reply.code(status).send(failure(code));
}
