import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';

const MOST_RECIPIENTS = 1000;
const MOST_CUSTOM_BYTES = 10_000;
const MOST_AHEAD_SECONDS = 72 * 60 * 60;
/** Headers that a mail gets by itself, so that nobody may set them. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set(
  'x-sg-id x-sg-eid received dkim-signature content-type content-transfer-encoding to from subject reply-to cc bcc'.split(
    ' ',
  ),
);

const Address = Type.Object({ email: Type.String(), name: Type.Optional(Type.String()) });
type Address = Static<typeof Address>;
const Texts = Type.Record(Type.String(), Type.String());
const Personalization = Type.Object({
  to: Type.Optional(Type.Array(Address)),
  cc: Type.Optional(Type.Array(Address)),
  bcc: Type.Optional(Type.Array(Address)),
  subject: Type.Optional(Type.String()),
  headers: Type.Optional(Texts),
  custom_args: Type.Optional(Texts),
  send_at: Type.Optional(Type.Integer()),
});
const Mail = Type.Object({
  personalizations: Type.Optional(Type.Array(Personalization)),
  from: Type.Optional(Address),
  reply_to: Type.Optional(Address),
  subject: Type.Optional(Type.String()),
  content: Type.Optional(Type.Array(Type.Object({ type: Type.String(), value: Type.String() }))),
  attachments: Type.Optional(
    Type.Array(
      Type.Object({
        content: Type.String({ minLength: 1 }),
        filename: Type.String({ minLength: 1 }),
        type: Type.Optional(Type.String()),
        disposition: Type.Optional(Type.Enum(['inline', 'attachment'])),
        content_id: Type.Optional(Type.String()),
      }),
    ),
  ),
  headers: Type.Optional(Texts),
  categories: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { maxItems: 10 })),
  custom_args: Type.Optional(Texts),
  send_at: Type.Optional(Type.Integer()),
  mail_settings: Type.Optional(
    Type.Object({ sandbox_mode: Type.Optional(Type.Object({ enable: Type.Optional(Type.Boolean()) })) }),
  ),
});
/** A body of `POST /v3/mail/send` whose shape is right. */
export type Mail = Static<typeof Mail>;

/** One fault, as the API names it. */
export interface MailFault {
  readonly message: string;
  readonly field: string | null;
  readonly help: null;
}

/** A mail, or what is wrong with it. */
export type ParsedMail = { readonly mail: Mail } | { readonly faults: readonly MailFault[] };

/**
 * Reads the JSON of a mail, and checks what SendGrid checks before it answers.
 * https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send
 *
 * @param nowSeconds Unix time.
 */
export function parseMail(value: unknown, nowSeconds: number): ParsedMail {
  if (!Value.Check(Mail, value)) {
    const [fault] = Value.Errors(Mail, value);
    const field = fault?.instancePath.slice(1).replaceAll('/', '.') ?? '';
    return { faults: [faultOf(fault?.message ?? 'is invalid', field === '' ? null : field)] };
  }
  const faults = [...envelopeFaults(value), ...contentFaults(value), ...extraFaults(value, nowSeconds)];
  return faults.length === 0 ? { mail: value } : { faults };
}

/** Everybody it goes to, one after another. */
export function recipientsOf(mail: Mail): readonly string[] {
  return (mail.personalizations ?? []).flatMap(({ to = [], cc = [], bcc = [] }) =>
    [...to, ...cc, ...bcc].map(({ email }) => email),
  );
}

function envelopeFaults(mail: Mail): readonly MailFault[] {
  const { from, reply_to: replyTo, personalizations = [] } = mail;
  const faults: MailFault[] = [];
  if (from === undefined) {
    faults.push(faultOf('The from object must be provided for every email send.', 'from.email'));
  } else if (!isAddress(from)) {
    faults.push(faultOf('The from email does not contain a valid address.', 'from.email'));
  }
  if (replyTo !== undefined && !isAddress(replyTo)) {
    faults.push(faultOf('The reply_to email does not contain a valid address.', 'reply_to.email'));
  }
  if (personalizations.length === 0) {
    const message = 'The personalizations field is required and must have at least one personalization.';
    faults.push(faultOf(message, 'personalizations'));
  }
  for (const [index, { to = [], cc = [], bcc = [] }] of personalizations.entries()) {
    const field = `personalizations.${index}`;
    const all = [...to, ...cc, ...bcc];
    const emails = all.map(({ email }) => email.toLowerCase());
    if (to.length === 0) {
      faults.push(faultOf('The to array is required for all personalization objects.', `${field}.to`));
    }
    if (!all.every(isAddress)) faults.push(faultOf('Does not contain a valid address.', `${field}.to.0.email`));
    if (new Set(emails).size < emails.length) {
      faults.push(faultOf('Each email address in the personalization block should be unique.', field));
    }
  }
  if (recipientsOf(mail).length > MOST_RECIPIENTS) {
    faults.push(faultOf('The total number of recipients must be no more than 1000.', 'personalizations'));
  }
  return faults;
}

function contentFaults({ subject, content = [], personalizations = [] }: Mail): readonly MailFault[] {
  const faults: MailFault[] = [];
  if (!isTitled(subject) && (personalizations.length === 0 || !personalizations.every((to) => isTitled(to.subject)))) {
    faults.push(faultOf('The subject is required.', 'subject'));
  }
  if (content.length === 0) {
    faults.push(faultOf('Unless a valid template_id is provided, the content parameter is required.', 'content'));
  }
  const types = content.map(({ type }) => type);
  const [text, html] = [types.indexOf('text/plain'), types.indexOf('text/html')];
  if (text > 0 || html > 1 || (html === 1 && text !== 0)) {
    faults.push(
      faultOf('If present, text/plain must be first, followed by text/html, followed by any other.', 'content'),
    );
  }
  for (const [index, { value }] of content.entries()) {
    const message = 'The content value must be a string at least one character in length.';
    if (value === '') faults.push(faultOf(message, `content.${index}.value`));
  }
  return faults;
}

function extraFaults(mail: Mail, nowSeconds: number): readonly MailFault[] {
  const faults: MailFault[] = [];
  const blocks = [
    { at: '', block: mail },
    ...(mail.personalizations ?? []).map((block, index) => ({ at: `personalizations.${index}.`, block })),
  ];
  for (const { at, block } of blocks) {
    for (const name of Object.keys(block.headers ?? {})) {
      if (!RESERVED_HEADERS.has(name.toLowerCase())) continue;
      faults.push(faultOf(`The header ${name} is reserved, and cannot be set.`, `${at}headers`));
    }
    if (Buffer.byteLength(JSON.stringify(block.custom_args ?? {})) > MOST_CUSTOM_BYTES) {
      faults.push(faultOf('The custom_args must be less than 10000 bytes.', `${at}custom_args`));
    }
    if (block.send_at !== undefined && block.send_at > nowSeconds + MOST_AHEAD_SECONDS) {
      faults.push(faultOf('The send_at parameter is more than 72 hours in the future.', `${at}send_at`));
    }
  }
  return faults;
}

function isTitled(text: string | undefined): boolean {
  return text !== undefined && text !== '';
}

function isAddress({ email }: Address): boolean {
  return email.length <= 320 && /^[^\s@<>(),;:"[\]\\]+@[^\s@.,;]+(?:\.[^\s@.,;]+)+$/.test(email);
}

function faultOf(message: string, field: string | null): MailFault {
  return { message, field, help: null };
}
