import { Readable, Transform, Writable } from 'node:stream';
import { createTransport, type SendMailOptions } from 'nodemailer';
import type MimeNode from 'nodemailer/lib/mime-node';
import type {
  Mailbox,
  MessageProvider,
  NotificationReading,
  OutgoingEmail,
  ProviderNotification,
} from '../domain/ports.ts';
import { readDeliveryStatus } from './delivery-status.ts';
import { hasToken } from './notification-token.ts';
import { partlyTaken, type SmtpFailure, smtpOutcome } from './smtp-outcome.ts';
import { unsubscribeHeaders } from './unsubscribe-headers.ts';

export interface SmtpSettings {
  readonly host: string;
  readonly port: number;
  /** `implicit`: from the first byte; `required`: by STARTTLS, or nothing is sent. */
  readonly tls: 'implicit' | 'required' | 'none';
  /** Certificates to trust in place of those of the system, as PEM. */
  readonly ca?: string;
  readonly auth?: { readonly user: string; readonly pass: string };
  readonly connections: number;
  /** Of each step: connecting, and each answer of the server. */
  readonly timeoutMs: number;
  /**
   * Where mail that could not be delivered is returned to, one address for each message
   * (`bounces+<id>@` this domain), and the right side of Message-IDs.
   */
  readonly bounceDomain: string;
  /** In the query of the URL that returned mail is handed to, as `token`; absent: none is taken. */
  readonly notificationToken?: string;
  readonly dkim?: { readonly domain: string; readonly selector: string; readonly privateKey: string };
}

/**
 * What DKIM signs (RFC 6376, section 5.4.1). By itself nodemailer leaves List-Unsubscribe-Post out,
 * which RFC 8058 requires.
 */
const SIGNED_HEADERS = [
  'from',
  'reply-to',
  'subject',
  'date',
  'message-id',
  'to',
  'cc',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'list-unsubscribe',
  'list-unsubscribe-post',
].join(':');

const PIECE_BYTES = 16 * 1024;
const SMALL_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

type Pool = ReturnType<typeof createPool>;

/**
 * Mail by SMTP (RFC 5321), over connections that are kept. A mail is `unknown` where the server had
 * said that it takes it, and then said nothing. It has the same Message-ID at each attempt, so that a
 * second copy is seen as one.
 */
export function createSmtp(settings: SmtpSettings): MessageProvider<OutgoingEmail> {
  const pool = createPool(settings);
  const contents = watchContents(pool, { isSigned: settings.dkim !== undefined });
  return {
    name: 'smtp',
    channel: 'email',
    async send(email, signal) {
      if (signal.aborted) return { outcome: 'failed', reason: 'aborted' };
      const mail = mailOf(email, settings.bounceDomain);
      try {
        const { rejectedErrors = [] } = await pool.sendMail({ ...mail, signal });
        const { address: to } = email.to;
        const taken = { to, recipients: mail.envelope.to, providerId: mail.messageId };
        return partlyTaken(rejectedErrors.map(failureOf), taken);
      } catch (error) {
        return smtpOutcome(failureOf(error), { to: email.to.address, hasBegun: contents.hasBegun(mail.messageId) });
      } finally {
        contents.forget(mail.messageId);
      }
    },
    ...(settings.notificationToken !== undefined && {
      readNotification: (notification) => readReturned(notification, settings.notificationToken),
    }),
    close: async () => pool.close({ force: true }),
  };
}

/** A mail that came back, as it is. */
async function readReturned({ url, body }: ProviderNotification, token = ''): Promise<NotificationReading> {
  if (!hasToken(url, token)) return 'forged';
  const reports = await readDeliveryStatus(body);
  return reports === undefined ? 'unreadable' : { reports };
}

function createPool({ host, port, tls, ca, auth, connections, timeoutMs, dkim }: SmtpSettings) {
  return createTransport({
    pool: true,
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'required',
    ignoreTLS: tls === 'none',
    ...(ca !== undefined && { tls: { ca } }),
    ...(auth !== undefined && { auth: { ...auth } }),
    maxConnections: connections,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(dkim !== undefined && {
      dkim: {
        domainName: dkim.domain,
        keySelector: dkim.selector,
        privateKey: dkim.privateKey,
        headerFieldNames: SIGNED_HEADERS,
      },
    }),
  });
}

interface ContentWatch {
  hasBegun(messageId: string): boolean;
  forget(messageId: string): void;
}

/**
 * Sees whether a mail has begun to leave: a content is read once the server has answered to DATA, and
 * no earlier. Errors do not tell.
 */
function watchContents(pool: Pool, { isSigned }: { readonly isSigned: boolean }): ContentWatch {
  const contents = new Map<string, { readonly readableDidRead: boolean }>();
  pool.use('stream', ({ message, data }, done) => {
    message.transform(gathering);
    const create = message.createReadStream.bind(message);
    const isSmall = !isSigned && sizeOf(data.envelope) < SMALL_BYTES;
    message.createReadStream = (options) => {
      const content = isSmall ? wholeContent(message) : create(options);
      contents.set(String(data.messageId), content);
      return content;
    };
    done();
  });
  return {
    hasBegun: (messageId) => contents.get(messageId)?.readableDidRead ?? false,
    forget: (messageId) => void contents.delete(messageId),
  };
}

/** What {@link mailOf} says; large where it does not. */
function sizeOf(envelope: SendMailOptions['envelope']): number {
  const { size } = { size: undefined, ...envelope };
  return typeof size === 'number' ? size : SMALL_BYTES;
}

/**
 * A content in one piece, made as soon as its mail begins. nodemailer's own chain of streams costs more than all
 * else of a small mail. It does not sign such a content, nor is a large one to be in memory twice.
 */
function wholeContent(message: Pick<MimeNode, 'stream'>): Readable {
  const content = new Readable({ read: () => {} });
  const pieces: Buffer[] = [];
  const gathered = new Writable({
    write(piece: Buffer, _encoding, done) {
      pieces.push(piece);
      done();
    },
    final(done) {
      const isEnded = pieces.at(-1)?.at(-1) === LINE_FEED;
      if (!content.destroyed) {
        content.push(Buffer.concat(isEnded ? pieces : [...pieces, Buffer.from('\r\n')]));
        content.push(null);
      }
      done();
    },
  });
  message.stream(gathered, {}, (error) => {
    if (error) content.destroy(error);
    else gathered.end();
  });
  return content;
}

/** Passes a content on in few pieces: nodemailer makes one of each line of the head, and each would be a packet. */
function gathering(): Transform {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const gathered = (): Buffer => {
    const piece = Buffer.concat(pieces);
    pieces = [];
    bytes = 0;
    return piece;
  };
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes < PIECE_BYTES) done();
      else done(null, gathered());
    },
    flush: (done) => done(null, gathered()),
  });
}

/** Pure. The envelope is of objects alone: of a text, nodemailer would make several addresses. */
function mailOf(email: OutgoingEmail, bounceDomain: string) {
  const { id, from, to, cc, bcc, replyTo, subject, text, html, attachments, unsubscribeUrl } = email;
  return {
    messageId: `<${id}@${bounceDomain}>`,
    envelope: {
      from: `bounces+${id}@${bounceDomain}`,
      to: [to, ...cc, ...bcc].map(({ address }) => address),
      // A server that takes less says no before anything is sent (RFC 1870).
      size: leastBytes(email),
    },
    from: mailboxOf(from),
    to: mailboxOf(to),
    cc: cc.map(mailboxOf),
    ...(replyTo !== undefined && { replyTo: mailboxOf(replyTo) }),
    subject,
    text,
    ...(html !== undefined && { html }),
    attachments: attachments.map(({ filename, contentType, content }) => ({
      filename,
      contentType,
      content: Buffer.from(content),
    })),
    ...(unsubscribeUrl !== undefined && { headers: unsubscribeHeaders(unsubscribeUrl) }),
    dsn: { id, return: 'HDRS', notify: ['FAILURE', 'DELAY'] },
  } as const satisfies SendMailOptions;
}

/** Pure. What a mail has at least, without its head. */
function leastBytes({ text, html = '', attachments }: OutgoingEmail): number {
  const encoded = attachments.map(({ content }) => Math.ceil(content.length / 3) * 4);
  return encoded.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(text) + Buffer.byteLength(html));
}

function mailboxOf({ address, name = '' }: Mailbox): { name: string; address: string } {
  return { name, address };
}

function failureOf(error: unknown): SmtpFailure {
  return isFailure(error) ? error : {};
}

/** Each field of a failure may be absent. */
function isFailure(error: unknown): error is SmtpFailure {
  return error instanceof Error;
}
