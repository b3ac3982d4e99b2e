import type { Clock } from '@rollcall/platform/clock.ts';
import { type FieldFault, invalidRequest } from '@rollcall/platform/common-errors.ts';
import { type Parsed, parseEmailAddress } from '@rollcall/platform/mail-address.ts';
import type { CountryCode } from 'libphonenumber-js/max';
import { CommunicationError } from '../errors.ts';
import type {
  Category,
  Channel,
  Envelope,
  Message,
  MessageContent,
  NewMessage,
  Suppressions,
  TemplateUsed,
} from './messages.ts';
import type { Mailbox } from './ports.ts';
import { foldedRecipient, type PushPlatform, parsePhoneNumber, parsePushTarget } from './recipients.ts';
import { segmentsOf } from './segments.ts';
import { firstMessageState } from './states.ts';
import { mailOf, type UsableTemplate } from './templates/catalogue.ts';
import { plainTextOf, type Reader } from './templates/templates.ts';
import { TooLongError } from './templates/within-time.ts';
import { withUnsubscribeLink } from './unsubscribe.ts';

/** What all channels take. */
interface SendRequest {
  readonly category?: Category;
  /** A date-time of RFC 3339, at most 30 days ahead. */
  readonly sendAt?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly tags?: readonly string[];
}

export interface EmailRequest extends SendRequest {
  readonly to: string;
  readonly subject?: string;
  readonly template?: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  /** Of the template, or of the link to unsubscribe where there is none. */
  readonly locale?: string;
  readonly text?: string;
  readonly html?: string;
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
  readonly replyTo?: string;
  readonly from?: string;
  readonly attachments?: readonly {
    readonly filename: string;
    readonly contentType: string;
    /** Base64. */
    readonly content: string;
  }[];
}

export interface SmsRequest extends SendRequest {
  readonly to: string;
  readonly message: string;
}

export interface PushRequest extends SendRequest {
  readonly deviceToken: string;
  readonly platform?: PushPlatform;
  readonly title?: string;
  readonly body?: string;
  readonly data?: Readonly<Record<string, string | number | boolean>>;
}

/** What is configured, as far as acceptance asks. */
export interface Ways {
  /** Whether a provider takes such a message. */
  has(channel: Channel, envelope: Pick<Envelope, 'from' | 'platform' | 'country'>): boolean;
  /** Whether a provider takes mail from there; true where there is none at all. */
  mayBeFrom(address: string): boolean;
  /** Of mails that name none. */
  readonly from: Mailbox | undefined;
  /** Whose numbers are meant where none is given. */
  readonly region: CountryCode;
  /** For which there are providers. */
  readonly platforms: readonly PushPlatform[];
}

export interface AcceptanceDeps {
  /** Stores a message. Undefined: one is there by the same id, and stays. */
  readonly insert: (message: NewMessage) => Promise<Message | undefined>;
  readonly findTemplate: (subject: string, name: string) => Promise<UsableTemplate | undefined>;
  readonly suppressions: Suppressions;
  /** Undefined: the device is not known. */
  readonly deviceOf: (subject: string, token: string) => Promise<{ readonly platform: PushPlatform } | undefined>;
  readonly ways: Ways;
  /** Of a marketing mail; undefined: there is no such page. */
  readonly unsubscribeUrl: (
    message: Pick<NewMessage, 'id' | 'subject' | 'category'>,
    recipient: string,
  ) => string | undefined;
  readonly clock: Clock;
}

/** Who sends, and as what the message is stored. */
export interface Sending {
  readonly subject: string;
  readonly id: string;
  /** What paths of faults begin with: `body`, or `input` of a mutation. */
  readonly root: string;
}

/** Clocks differ, and requests wait; what is older was not meant. */
const LATEST_SEND_AT_MS = 5 * 60_000;
/** A message is tried for a day, then it is given up. */
export const EXPIRES_AFTER_MS = 24 * 3_600_000;

/**
 * Accepts a mail.
 *
 * @returns as `insert` does, and so do the other two.
 * @throws ServiceError INVALID_REQUEST, TEMPLATE_NOT_FOUND, TEMPLATE_VARIABLES, NO_PROVIDER.
 */
export async function acceptEmail(
  deps: AcceptanceDeps,
  sending: Sending,
  request: EmailRequest,
): Promise<Message | undefined> {
  const { ways } = deps;
  const { cc = [], bcc = [], replyTo, attachments = [] } = request;
  requireNone([...copyFaults(sending, request), ...sendAtFaults(deps, sending, request)]);
  const address = (name: string, text: string) => parsedOr(sending, name, parseEmailAddress(text));
  const to = address('to', request.to);
  const from = request.from === undefined ? ways.from : { address: address('from', request.from) };
  if (from === undefined) throw new CommunicationError('NO_PROVIDER', { message: 'No sender of mails is configured' });
  const url =
    request.category === 'marketing' ? deps.unsubscribeUrl({ ...sending, category: request.category }, to) : undefined;
  const { used, ...texts } = await textsOf(deps, { ...sending, unsubscribeUrl: url }, request);
  const once = newRecipients(to);
  const content = {
    channel: 'email' as const,
    from: request.from === ways.from?.address && ways.from !== undefined ? ways.from : from,
    to: { address: to },
    cc: cc.map((text, index) => ({ address: address(`cc/${index}`, text) })).filter(once),
    bcc: bcc.map((text, index) => ({ address: address(`bcc/${index}`, text) })).filter(once),
    ...(replyTo !== undefined && { replyTo: { address: address('replyTo', replyTo) } }),
    ...(url === undefined ? texts : withUnsubscribeLink(texts, { url, locale: used?.locale ?? request.locale })),
    attachments: attachments.map(({ content: base64, ...attachment }) => ({ ...attachment, base64 })),
  };
  const envelope = { to, from: from.address, cc: addressesOf(content.cc), bcc: addressesOf(content.bcc) };
  return accept(deps, sending, { request, content, used, envelope });
}

function addressesOf(mailboxes: readonly Mailbox[]): readonly string[] {
  return mailboxes.map(({ address }) => address);
}

/** The link to unsubscribe is of one recipient: who has a copy would unsubscribe another. */
function copyFaults({ root }: Sending, request: EmailRequest): readonly FieldFault[] {
  if (request.category !== 'marketing') return [];
  const named = (['cc', 'bcc'] as const).filter((name) => (request[name]?.length ?? 0) > 0);
  const message = 'must be empty in marketing mails, whose link to unsubscribe is of one recipient; send one mail each';
  return named.map((name) => ({ path: `${root}/${name}`, message }));
}

/** @returns whether an address was not named before, in whatever capitals: each gets one copy. */
function newRecipients(to: string): (mailbox: Mailbox) => boolean {
  const named = new Set([foldedRecipient(to)]);
  return ({ address }) => {
    const folded = foldedRecipient(address);
    const isNew = !named.has(folded);
    named.add(folded);
    return isNew;
  };
}

/** Accepts an SMS. @throws ServiceError INVALID_REQUEST, NO_PROVIDER. */
export async function acceptSms(
  deps: AcceptanceDeps,
  sending: Sending,
  request: SmsRequest,
): Promise<Message | undefined> {
  const number = parsedOr(sending, 'to', parsePhoneNumber(request.to, deps.ways.region));
  requireNone(sendAtFaults(deps, sending, request));
  const { encoding, parts } = segmentsOf(request.message);
  const envelope = {
    to: number.e164,
    ...(number.country !== undefined && { country: number.country }),
    segments: parts.length,
    encoding,
  };
  const content: MessageContent = { channel: 'sms', to: number.e164, text: request.message };
  return accept(deps, sending, { request, content, used: undefined, envelope });
}

/**
 * Accepts a push message. Its platform is that of the request, of the device, or the only one there is.
 *
 * @throws ServiceError INVALID_REQUEST, NO_PROVIDER.
 */
export async function acceptPush(
  deps: AcceptanceDeps,
  sending: Sending,
  request: PushRequest,
): Promise<Message | undefined> {
  const { ways, deviceOf } = deps;
  const { deviceToken, title, body, data = {} } = request;
  if (ways.platforms.length === 0) throw new CommunicationError('NO_PROVIDER');
  const [only, another] = ways.platforms;
  const platform =
    request.platform ??
    (await deviceOf(sending.subject, deviceToken))?.platform ??
    (another === undefined ? only : undefined);
  const late = sendAtFaults(deps, sending, request);
  if (platform === undefined) {
    const message = 'is required where the device is not known';
    throw invalidRequest([{ path: `${sending.root}/platform`, message }, ...late]);
  }
  const parsed = parsePushTarget(deviceToken, platform);
  requireNone([...faultsIn(sending, 'deviceToken', parsed), ...late]);
  const target = parsedOr(sending, 'deviceToken', parsed);
  const content: MessageContent = {
    channel: 'push',
    target,
    ...(title !== undefined && { title }),
    ...(body !== undefined && { body }),
    data: Object.fromEntries(Object.entries(data).map(([name, value]) => [name, String(value)])),
  };
  return accept(deps, sending, { request, content, used: undefined, envelope: { to: deviceToken, platform } });
}

interface Draft {
  readonly request: SendRequest;
  readonly content: MessageContent;
  readonly used: TemplateUsed | undefined;
  readonly envelope: Omit<Envelope, 'metadata'>;
}

async function accept(deps: AcceptanceDeps, { subject, id }: Sending, draft: Draft): Promise<Message | undefined> {
  const { insert, suppressions, ways, clock } = deps;
  const { request, content, used: template, envelope } = draft;
  const { category = 'transactional', metadata = {}, tags = [] } = request;
  const { channel } = content;
  const now = clock.now();
  const sendAt = request.sendAt === undefined ? undefined : new Date(request.sendAt);
  if (!ways.has(channel, envelope)) throw new CommunicationError('NO_PROVIDER');
  const reason = await suppressions.reasonFor({ subject, channel, recipient: envelope.to, category });
  return insert({
    id,
    subject,
    state: firstMessageState({ isSuppressed: reason !== undefined, sendAt, now }),
    reason,
    category,
    template,
    tags: [...new Set(tags)],
    envelope: { ...envelope, metadata },
    content,
    sendAt,
    createdAt: now,
    expiresAt: expiryOf(sendAt ?? now, now),
  });
}

function sendAtFaults({ clock }: AcceptanceDeps, { root }: Sending, { sendAt }: SendRequest): readonly FieldFault[] {
  return sendAt === undefined || !isOver(sendAt, clock.now()) ? [] : [sendAtFault(root)];
}

function isOver(sendAt: string, now: Date): boolean {
  return now.getTime() - new Date(sendAt).getTime() > LATEST_SEND_AT_MS;
}

function sendAtFault(root: string): FieldFault {
  return { path: `${root}/sendAt`, message: 'must not be over' };
}

/**
 * Pure. When a message is to be sent. Here, and not in the schema: a repetition may come after it.
 *
 * @param text a date-time. @throws ServiceError INVALID_REQUEST where it is over.
 */
export function sendAtOf(text: string, { now, root }: { readonly now: Date; readonly root: string }): Date {
  if (isOver(text, now)) throw invalidRequest([sendAtFault(root)]);
  return new Date(text);
}

/** Pure. After it a message that is sent at a time is worth nothing any more. */
export function expiryOf(sendAt: Date, now: Date): Date {
  return new Date(Math.max(now.getTime(), sendAt.getTime()) + EXPIRES_AFTER_MS);
}

interface Texts {
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  readonly used: TemplateUsed | undefined;
}

/** A subject of the request stands for that of the template. */
async function textsOf(
  deps: AcceptanceDeps,
  { subject, root, unsubscribeUrl }: Sending & Pick<Reader, 'unsubscribeUrl'>,
  request: EmailRequest,
): Promise<Texts> {
  const { template: name, variables = {}, locale, subject: given, text, html } = request;
  if (name === undefined) {
    return {
      subject: given ?? '',
      text: text ?? textOfHtml(html ?? '', root),
      ...(html !== undefined && { html }),
      used: undefined,
    };
  }
  const found = await deps.findTemplate(subject, name);
  if (found === undefined) throw new CommunicationError('TEMPLATE_NOT_FOUND', { details: { template: name } });
  const mail = mailOf(found, { variables, unsubscribeUrl, ...(locale !== undefined && { locale }) }, root);
  return {
    subject: given ?? mail.subject,
    text: mail.text,
    ...(mail.html !== undefined && { html: mail.html }),
    used: { name, version: found.version, locale: mail.locale },
  };
}

/** @throws ServiceError INVALID_REQUEST. */
function textOfHtml(html: string, root: string): string {
  try {
    return plainTextOf(html);
  } catch (error) {
    if (!(error instanceof TooLongError)) throw error;
    throw invalidRequest([{ path: `${root}/html`, message: 'cannot be made a text in time; give text beside it' }]);
  }
}

/** What the schema of a door has checked before, or {@link requireNone}. */
function parsedOr<T>(sending: Sending, name: string, parsed: Parsed<T>): T {
  if ('value' in parsed) return parsed.value;
  throw invalidRequest([...faultsIn(sending, name, parsed)]);
}

function faultsIn({ root }: Sending, name: string, parsed: Parsed<unknown>): readonly FieldFault[] {
  return 'value' in parsed ? [] : [{ path: `${root}/${name}`, message: parsed.fault }];
}

/** All faults at once. @throws ServiceError INVALID_REQUEST where there is one. */
function requireNone(faults: readonly FieldFault[]): void {
  if (faults.length > 0) throw invalidRequest(faults);
}
