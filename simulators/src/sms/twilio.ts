import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { isBasic } from '../basic-auth.ts';
import { formOf } from '../bodies.ts';
import type { Notification } from '../notifier.ts';
import {
  type IncomingText,
  type SimulationContext,
  type Simulator,
  type SimulatorOptions,
  startSimulator,
} from '../simulator.ts';
import { classOf } from './numbers.ts';
import { segmentsOf } from './segments.ts';
import { type TwilioErrorCode, twilioError, twilioErrorOfStatus } from './twilio-errors.ts';
import { twilioSignature } from './twilio-signature.ts';

const API_VERSION = '2010-04-01';
const BODY_MOST_CHARACTERS = 1600;
const VALIDITY_MOST_SECONDS = 36_000;
/** E.164, a short code, or a name of at most eleven characters with a letter in it. */
const SENDER = /^(?:\+[1-9]\d{6,14}|\d{3,6}|(?=[\d ]*[A-Za-z])[A-Za-z\d ]{1,11})$/;
/** Refused at once. */
const REFUSALS = [21211, 21610, 21614] as const;
/** Accepted, and then undelivered: unreachable, unknown, landline, filtered. */
const FAILURES = [30003, 30005, 30006, 30007] as const;
/** How far a message comes that comes no further, without an error. */
const STATUSES = ['queued', 'sent'] as const;

export interface TwilioOptions extends SimulatorOptions {
  readonly accountSid?: string;
  readonly authToken?: string;
  /** What it may send from; anything when absent. */
  readonly senders?: readonly string[];
  readonly messagingServiceSids?: readonly string[];
  /** Where incoming messages go; nowhere when absent. */
  readonly webhookUrl?: string;
}

interface TwilioMessage {
  readonly sid: string;
  readonly to: string;
  readonly from: string | null;
  readonly messagingServiceSid: string | null;
  readonly body: string;
  readonly segments: number;
  /** What it comes to; the answer to who sent it says only that it was taken. */
  readonly status: string;
  readonly errorCode: number | null;
  readonly createdAt: Date;
}

/** Twilio's Programmable Messaging. https://www.twilio.com/docs/messaging/api/message-resource */
export async function startTwilio(options: TwilioOptions = {}): Promise<Simulator> {
  const {
    accountSid = `AC${'0'.repeat(31)}1`,
    authToken = 'twilio-auth-token',
    senders,
    messagingServiceSids = [`MG${'0'.repeat(31)}1`],
  } = options;
  let { webhookUrl } = options;
  const account: Account = { accountSid, authToken, senders, messagingServiceSids };
  const messages = new Map<string, TwilioMessage>();
  return await startSimulator(
    {
      name: 'twilio',
      routes: (app, context) => addRoutes(app, { ...context, account, messages }),
      credentials: (url) => ({ baseUrl: url, accountSid, authToken, messagingServiceSids }),
      state: () => ({ messages: [...messages.values()] }),
      reset: () => messages.clear(),
      setWebhook(url) {
        webhookUrl = url;
      },
      incoming: (message) => (webhookUrl === undefined ? undefined : incoming(message, webhookUrl, account)),
      outcomes: [...REFUSALS.map(String), ...FAILURES.map(String), ...STATUSES],
      errorBody: twilioErrorOfStatus,
      // Status callbacks are not repeated.
      retryDelaysMs: [],
    },
    options,
  );
}

interface Account {
  readonly accountSid: string;
  readonly authToken: string;
  readonly senders: readonly string[] | undefined;
  readonly messagingServiceSids: readonly string[];
}

interface Twilio extends SimulationContext {
  readonly account: Account;
  readonly messages: Map<string, TwilioMessage>;
}

function addRoutes(app: FastifyInstance, twilio: Twilio): void {
  const { account, messages, clock } = twilio;
  const root = `/${API_VERSION}/Accounts/:accountSid`;
  app.addHook<{ Params: { accountSid?: string } }>('preHandler', async (request, reply) => {
    if (!isBasic(request.headers.authorization, account.accountSid, account.authToken)) {
      return await refuse(reply, 20003);
    }
    if (request.params.accountSid !== account.accountSid) return await refuse(reply, 20404);
    return undefined;
  });

  app.post<{ Body: Buffer | undefined }>(`${root}/Messages.json`, async (request, reply) => {
    const form = formOf(request.body ?? Buffer.alloc(0)) ?? new URLSearchParams();
    const to = form.get('To') ?? '';
    const outcome = twilio.outcomeOf(to);
    const error = formError(form, account) ?? REFUSALS.find((code) => String(code) === outcome);
    if (error !== undefined) return await refuse(reply, error);
    const message: TwilioMessage = {
      sid: `SM${randomUUID().replaceAll('-', '')}`,
      to,
      from: form.get('From'),
      messagingServiceSid: form.get('MessagingServiceSid'),
      body: form.get('Body') ?? '',
      segments: segmentsOf(form.get('Body') ?? '').length,
      createdAt: clock.now(),
      ...endOf(outcome),
    };
    messages.set(message.sid, message);
    const callback = form.get('StatusCallback');
    if (callback !== null) await twilio.notify(request, statusCallbacks(message, callback, account));
    const status = message.messagingServiceSid === null ? 'queued' : 'accepted';
    return await reply.code(201).send(resource({ ...message, status, errorCode: null }, account));
  });

  app.get<{ Params: { sid: string } }>(`${root}/Messages/:sid.json`, async (request, reply) => {
    const message = messages.get(request.params.sid);
    return message === undefined ? await refuse(reply, 20404) : resource(message, account);
  });

  app.get<{ Querystring: { To?: string; From?: string } }>(`${root}/Messages.json`, async (request) => {
    const { To: to, From: from } = request.query;
    const found = [...messages.values()].filter(
      (message) => (to === undefined || message.to === to) && (from === undefined || message.from === from),
    );
    return {
      messages: found.toReversed().map((message) => resource(message, account)),
      page: 0,
      page_size: 50,
      uri: request.url,
      first_page_uri: request.url,
      next_page_uri: null,
      previous_page_uri: null,
    };
  });
}

/** The first thing that is wrong with a message, as Twilio finds it. */
function formError(form: URLSearchParams, { senders, messagingServiceSids }: Account): TwilioErrorCode | undefined {
  const [to, from, service] = [form.get('To'), form.get('From'), form.get('MessagingServiceSid')];
  const body = form.get('Body') ?? '';
  const validity = form.get('ValidityPeriod');
  const callback = form.get('StatusCallback');
  if (to === null || to === '') return 21604;
  if (service === null && (from === null || from === '')) return 21603;
  if (service !== null && !messagingServiceSids.includes(service)) return 21701;
  if (body === '') return 21602;
  if (body.length > BODY_MOST_CHARACTERS) return 21617;
  if (from !== null && !SENDER.test(from)) return 21212;
  if (from !== null && senders?.includes(from) === false) return 21606;
  if (validity !== null && !isWithin(validity, VALIDITY_MOST_SECONDS)) return 21729;
  if (callback !== null && !/^https?:$/.test(URL.parse(callback)?.protocol ?? '')) return 21609;
  const number = classOf(to);
  return number === 'invalid' ? 21211 : number === 'not-mobile' ? 21614 : undefined;
}

function isWithin(seconds: string, most: number): boolean {
  return /^[1-9]\d{0,5}$/.test(seconds) && Number(seconds) <= most;
}

function endOf(outcome: string | undefined): Pick<TwilioMessage, 'status' | 'errorCode'> {
  const errorCode = FAILURES.find((code) => String(code) === outcome);
  if (errorCode !== undefined) return { status: 'undelivered', errorCode };
  return { status: STATUSES.find((status) => status === outcome) ?? 'delivered', errorCode: null };
}

/** A status after the other, up to the one it comes to. */
function statusCallbacks(message: TwilioMessage, url: string, account: Account): readonly Notification[] {
  const way = ['queued', 'sent', 'delivered'];
  const end = message.status === 'undelivered' ? ['queued', 'sent', 'undelivered'] : way;
  return end
    .slice(0, end.indexOf(message.status) + 1)
    .map((status) => callbackOf({ ...message, status }, url, account));
}

function callbackOf(message: TwilioMessage, url: string, account: Account): Notification {
  const { sid, status, to, from, messagingServiceSid, errorCode } = message;
  return signed(url, account, {
    AccountSid: account.accountSid,
    ApiVersion: API_VERSION,
    ...(from === null ? {} : { From: from }),
    MessageSid: sid,
    MessageStatus: status,
    ...(messagingServiceSid === null ? {} : { MessagingServiceSid: messagingServiceSid }),
    SmsSid: sid,
    SmsStatus: status,
    To: to,
    ...(status === 'undelivered' ? { ErrorCode: String(errorCode) } : {}),
  });
}

/** What somebody wrote to a number of the account. */
function incoming({ from, text }: IncomingText, url: string, account: Account): Notification {
  const sid = `SM${randomUUID().replaceAll('-', '')}`;
  return signed(url, account, {
    AccountSid: account.accountSid,
    ApiVersion: API_VERSION,
    Body: text,
    From: from,
    MessageSid: sid,
    NumMedia: '0',
    NumSegments: String(segmentsOf(text).length),
    SmsMessageSid: sid,
    SmsSid: sid,
    SmsStatus: 'received',
    To: account.senders?.[0] ?? '+27600000001',
  });
}

function signed(url: string, { authToken }: Account, fields: Readonly<Record<string, string>>): Notification {
  return ({ isForged }) => ({
    url,
    headers: {
      'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
      'user-agent': 'TwilioProxy/1.1',
      'x-twilio-signature': twilioSignature(isForged ? `${authToken}?` : authToken, url, fields),
    },
    body: new URLSearchParams(fields).toString(),
  });
}

/** A message as the API shows it; its keys are Twilio's. */
function resource(message: TwilioMessage, { accountSid }: Account): unknown {
  const { sid, to, from, messagingServiceSid, body, segments, status, errorCode, createdAt } = message;
  const uri = `/${API_VERSION}/Accounts/${accountSid}/Messages/${sid}.json`;
  const isOut = status !== 'queued' && status !== 'accepted';
  return {
    account_sid: accountSid,
    api_version: API_VERSION,
    body,
    date_created: rfc2822(createdAt),
    date_sent: isOut ? rfc2822(createdAt) : null,
    date_updated: rfc2822(createdAt),
    direction: 'outbound-api',
    error_code: errorCode,
    error_message: null,
    from,
    messaging_service_sid: messagingServiceSid,
    num_media: '0',
    num_segments: String(segments),
    price: null,
    price_unit: 'USD',
    sid,
    status,
    subresource_uris: { media: uri.replace(/\.json$/, '/Media.json') },
    to,
    uri,
  };
}

function rfc2822(at: Date): string {
  return at.toUTCString().replace('GMT', '+0000');
}

async function refuse(reply: FastifyReply, code: TwilioErrorCode): Promise<FastifyReply> {
  const { status, body } = twilioError(code);
  return await reply.code(status).send(body);
}
