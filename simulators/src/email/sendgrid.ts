import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  randomUUID,
} from 'node:crypto';
import { isSameSecret } from '@rollcall/platform/webhooks/signatures.ts';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { jsonOf } from '../bodies.ts';
import type { Notification } from '../notifier.ts';
import { type SimulationContext, type Simulator, type SimulatorOptions, startSimulator } from '../simulator.ts';
import { type Mail, type MailFault, parseMail, recipientsOf } from './sendgrid-mail.ts';
import { sendGridSignature } from './sendgrid-signature.ts';

/** What is told of a recipient, after which: each row is one outcome. */
const EVENTS: Readonly<Record<string, readonly string[]>> = {
  delivered: ['processed', 'delivered'],
  processed: ['processed'],
  bounce: ['processed', 'bounce'],
  blocked: ['processed', 'blocked'],
  dropped: ['dropped'],
  deferred: ['processed', 'deferred', 'delivered'],
  open: ['processed', 'delivered', 'open'],
  spamreport: ['processed', 'delivered', 'spamreport'],
  unsubscribe: ['processed', 'delivered', 'unsubscribe'],
};
const EVENT_FIELDS: Readonly<Record<string, object>> = {
  delivered: { response: '250 2.0.0 OK' },
  bounce: {
    type: 'bounce',
    status: '5.1.1',
    reason: '550 5.1.1 The email account that you tried to reach does not exist',
    bounce_classification: 'Invalid Address',
  },
  // Told as a bounce, of a mailbox that is well.
  blocked: {
    event: 'bounce',
    type: 'blocked',
    status: '5.7.1',
    reason: '550 5.7.1 The message was refused by policy',
    bounce_classification: 'Content',
  },
  dropped: { reason: 'Bounced Address', status: '5.0.0' },
  deferred: { response: '421 4.7.0 Try again later', attempt: '1' },
  open: { ip: '127.0.0.1', useragent: 'Mozilla/5.0', sg_machine_open: false },
};

export interface SendGridOptions extends SimulatorOptions {
  readonly apiKey?: string;
  /** From which addresses it may send; any when absent. */
  readonly senders?: readonly string[];
  /** Where events go; nowhere when absent. */
  readonly eventWebhookUrl?: string;
  /** Signs events: of P-256, in PEM; a new one when absent. */
  readonly privateKey?: string;
}

interface AcceptedMail {
  /** As in `X-Message-Id`. */
  readonly messageId: string;
  readonly mail: Mail;
}

/** SendGrid's Mail Send API and Event Webhook. */
export async function startSendGrid(options: SendGridOptions = {}): Promise<Simulator> {
  const { apiKey = 'SG.simulator.key', senders } = options;
  let { eventWebhookUrl } = options;
  const privateKey = options.privateKey === undefined ? newPrivateKey() : createPrivateKey(options.privateKey);
  const publicKey = createPublicKey(privateKey);
  const stranger = newPrivateKey();
  const mails = new Map<string, AcceptedMail>();

  /** A call of the webhook: events with CRLF after each, which is signed with them. */
  const webhookCall =
    (url: string, events: readonly object[]): Notification =>
    ({ at, isForged }) => {
      const body = `[${events.map((event) => JSON.stringify(event)).join(',\r\n')}]\r\n`;
      const timestamp = String(Math.floor(at.getTime() / 1000));
      return {
        url,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'SendGrid Event API',
          'x-twilio-email-event-webhook-signature': sendGridSignature(
            isForged ? stranger : privateKey,
            timestamp,
            body,
          ),
          'x-twilio-email-event-webhook-timestamp': timestamp,
        },
        body,
      };
    };

  return await startSimulator(
    {
      name: 'sendgrid',
      routes(app, context) {
        app.addHook('preHandler', async (request, reply) => {
          const key = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
          if (isSameSecret(apiKey, key)) return undefined;
          return await refuse(reply, 401, 'The provided authorization grant is invalid, expired, or revoked');
        });
        addRoutes(app, { ...context, mails, senders, eventWebhookUrl: () => eventWebhookUrl, webhookCall });
      },
      credentials: (url) => ({
        baseUrl: url,
        apiKey,
        eventWebhookUrl: eventWebhookUrl ?? null,
        eventWebhookPublicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
      }),
      state: () => ({ mails: [...mails.values()] }),
      reset: () => mails.clear(),
      setWebhook(url) {
        eventWebhookUrl = url;
      },
      outcomes: Object.keys(EVENTS),
      errorBody: (status) => errorsOf(status === 429 ? 'too many requests' : 'internal error'),
      retryDelaysMs: [1000, 10_000, 60_000],
    },
    options,
  );
}

function newPrivateKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

interface SendGrid extends SimulationContext {
  readonly mails: Map<string, AcceptedMail>;
  readonly senders: readonly string[] | undefined;
  readonly eventWebhookUrl: () => string | undefined;
  readonly webhookCall: (url: string, events: readonly object[]) => Notification;
}

function addRoutes(app: FastifyInstance, sendGrid: SendGrid): void {
  const { clock, mails, senders } = sendGrid;
  app.post<{ Body: Buffer | undefined }>('/v3/mail/send', async (request, reply) => {
    const parsed = parseMail(jsonOf(request.body ?? Buffer.alloc(0)), Math.floor(clock.now().getTime() / 1000));
    if ('faults' in parsed) return await reply.code(400).send({ errors: parsed.faults });
    const { mail } = parsed;
    if (senders?.includes(mail.from?.email ?? '') === false) {
      return await refuse(reply, 403, 'The from address does not match a verified Sender Identity.', 'from');
    }
    if (mail.mail_settings?.sandbox_mode?.enable === true) return await reply.code(200).send();
    const messageId = randomBytes(16).toString('base64url');
    const accepted = { messageId, mail };
    mails.set(messageId, accepted);
    const eventWebhookUrl = sendGrid.eventWebhookUrl();
    if (eventWebhookUrl !== undefined) {
      const rounds = eventRounds(accepted, sendGrid);
      await sendGrid.notify(
        request,
        rounds.map((events) => sendGrid.webhookCall(eventWebhookUrl, events)),
      );
    }
    return await reply.code(202).header('x-message-id', messageId).send();
  });
}

/** What is told of every recipient first, second and third: a call of the webhook each. */
function eventRounds(
  { messageId, mail }: AcceptedMail,
  { clock, outcomeOf }: SendGrid,
): readonly (readonly object[])[] {
  const timestamp = Math.floor(clock.now().getTime() / 1000);
  const told = recipientsOf(mail).map((email) => {
    const own = mail.personalizations?.find(({ to }) => to?.some((address) => address.email === email))?.custom_args;
    return (EVENTS[outcomeOf(email) ?? 'delivered'] ?? []).map((event) => ({
      ...mail.custom_args,
      ...own,
      email,
      timestamp,
      'smtp-id': `<${messageId}@geopod-ismtpd-1>`,
      event,
      category: mail.categories ?? [],
      sg_event_id: randomUUID().replaceAll('-', ''),
      sg_message_id: `${messageId}.recvd-simulator-1-1.0`,
      ...EVENT_FIELDS[event],
    }));
  });
  return [0, 1, 2]
    .map((round) => told.flatMap((events) => events.slice(round, round + 1)))
    .filter(({ length }) => length > 0);
}

function errorsOf(message: string, field: string | null = null): { readonly errors: readonly MailFault[] } {
  return { errors: [{ message, field, help: null }] };
}

async function refuse(reply: FastifyReply, status: number, ...error: [string, string?]): Promise<FastifyReply> {
  return await reply.code(status).send(errorsOf(...error));
}
