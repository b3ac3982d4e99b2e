import type { Clock } from '@rollcall/platform/clock.ts';
import { parseDateTime } from '@rollcall/platform/date-time.ts';
import { ONE_LINE, patternInWords } from '@rollcall/platform/http/patterns.ts';
import { strict } from '@rollcall/platform/http/resources.ts';
import { parseEmailAddress } from '@rollcall/platform/mail-address.ts';
import { Type } from 'typebox';
import type { Ways } from '../domain/acceptance.ts';
import { categories } from '../domain/messages.ts';
import { parsePhoneNumber, pushPlatforms } from '../domain/recipients.ts';
import { MOST_SEGMENTS, segmentsOf } from '../domain/segments.ts';
import { LONGEST_VARIABLES } from '../domain/templates/variables.ts';

/** What the checks of requests need to know. */
export interface SendingRules {
  readonly ways: Pick<Ways, 'mayBeFrom' | 'region'>;
  readonly clock: Clock;
}

const DAY_MS = 86_400_000;
const LATEST_DAYS = 30;
const MOST_ATTACHMENT_BYTES = 10 * 1024 * 1024;
const LONGEST_TEXT = 1_000_000;
const MOST_PUSH_BYTES = 4096;

/** Names of tags, and of templates. */
export const TAG = patternInWords('^[A-Za-z0-9_.:-]{1,64}$', 'must have 1 to 64 letters, digits, and any of `_.:-`');
export const TEMPLATE_NAME = patternInWords(
  '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
  'must have 1 to 64 letters, digits, and any of `._-`, and begin with one of the former',
);

/** Language tag (BCP 47). */
export const Locale = Type.String({
  maxLength: 64,
  ...patternInWords('^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*$', 'must be a language tag of BCP 47, such as en-ZA'),
  description: 'Language tag (BCP 47), such as en-ZA',
});

/** Values of a template. */
export const templateVariables = Type.Refine(
  Type.Record(Type.String(), Type.Unknown(), {
    description: `Of the template; at most ${LONGEST_VARIABLES} characters as JSON`,
  }),
  (values) => JSON.stringify(values).length <= LONGEST_VARIABLES,
  () => `must have at most ${LONGEST_VARIABLES} characters as JSON`,
);

/** One line: control characters would begin another header. */
const lineOf = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, ...ONE_LINE, description });
/** Several lines, as people write them. */
const textOf = (maxLength: number, description: string) =>
  Type.String({
    minLength: 1,
    maxLength,
    ...patternInWords(
      '^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f]*$',
      'must have no control characters but line breaks and tabs',
    ),
    description,
  });

const address = (description: string) =>
  Type.Refine(
    Type.String({ minLength: 3, maxLength: 320, description }),
    (text) => 'value' in parseEmailAddress(text),
    (text) => faultOf(parseEmailAddress(text)),
  );

function faultOf(parsed: { readonly value: unknown } | { readonly fault: string }): string {
  return 'fault' in parsed ? parsed.fault : 'is not valid';
}

/** A rule of several members: unlike a refinement of the body, it is told beside the faults of each. */
function together(isKept: (members: Readonly<Record<string, unknown>>) => boolean, message: string) {
  return Type.Refine(
    Type.Unknown(),
    (body) => typeof body !== 'object' || body === null || isKept(Object.fromEntries(Object.entries(body))),
    () => message,
  );
}

function sendAtOf({ clock }: Pick<SendingRules, 'clock'>) {
  return Type.Refine(
    Type.String({ maxLength: 64, description: 'Not before this date-time (RFC 3339), at most 30 days ahead' }),
    (text) => isSoon(text, clock.now()),
    () => `must be a date-time at most ${LATEST_DAYS} days ahead, such as 2026-11-20T10:00:00Z`,
  );
}

/** Body of `PATCH /messages/{id}`. */
export function messagePatch(rules: Pick<SendingRules, 'clock'>) {
  return Type.Object({ sendAt: sendAtOf(rules) }, strict);
}

/** Members of every request to send. */
function commonMembers(rules: Pick<SendingRules, 'clock'>) {
  return {
    category: Type.Optional(
      Type.Enum(categories, { description: 'Recipients may opt out of `marketing`; `transactional` when absent' }),
    ),
    sendAt: Type.Optional(sendAtOf(rules)),
    metadata: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$' }), Type.String({ maxLength: 500 }), {
        maxProperties: 20,
        additionalProperties: false,
        description: 'For the sender; nobody else sees it',
      }),
    ),
    tags: Type.Optional(
      Type.Array(Type.String(TAG), {
        maxItems: 10,
        description: 'To find messages by; without personal data',
      }),
    ),
  };
}

function isSoon(text: string, now: Date): boolean {
  const at = parseDateTime(text);
  return at !== undefined && at.getTime() <= now.getTime() + LATEST_DAYS * DAY_MS;
}

const Attachment = Type.Object(
  {
    filename: lineOf(255, 'Without a path'),
    contentType: Type.String({
      maxLength: 127,
      ...patternInWords(
        '^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*$',
        'must be a media type, such as application/pdf',
      ),
    }),
    content: Type.Refine(
      Type.String({ minLength: 1, description: 'Base64' }),
      (text) => Buffer.from(text, 'base64').toString('base64') === text,
      () => 'must be base64 with its padding',
    ),
  },
  strict,
);

const copies = (description: string) =>
  Type.Optional(Type.Array(address('One address'), { maxItems: 10, description }));

/** Body of `POST /emails`. */
export function emailBody(rules: SendingRules) {
  const { ways } = rules;
  return Type.Object(
    {
      to: address('One mail address'),
      subject: Type.Optional(lineOf(255, 'In place of that of the template; needed without one')),
      template: Type.Optional(Type.String(TEMPLATE_NAME)),
      variables: Type.Optional(templateVariables),
      locale: Type.Optional(Locale),
      text: Type.Optional(textOf(LONGEST_TEXT, 'Made of `html` when absent')),
      html: Type.Optional(textOf(LONGEST_TEXT, 'As it is sent')),
      cc: copies('Who gets a copy'),
      bcc: copies('Who gets a copy without being named'),
      replyTo: Type.Optional(address('Where answers go')),
      from: Type.Optional(
        Type.Refine(
          address('One of the senders that are configured; the configured one when absent'),
          (text) => isSender(text, ways),
          () => 'must be a sender that is configured',
        ),
      ),
      attachments: Type.Optional(
        Type.Refine(
          Type.Array(Attachment, { maxItems: 20, description: '10 MiB together' }),
          (all) =>
            all.reduce((sum, { content }) => sum + Buffer.byteLength(content, 'base64'), 0) <= MOST_ATTACHMENT_BYTES,
          () => 'must have at most 10 MiB together',
        ),
      ),
      ...commonMembers(rules),
    },
    {
      ...strict,
      allOf: [
        together(
          ({ template, subject, text, html }) =>
            template === undefined
              ? subject !== undefined && (text ?? html) !== undefined
              : text === undefined && html === undefined,
          'must have either template, or subject and text or html',
        ),
        together(
          ({ template, variables, locale, category }) =>
            template !== undefined || (variables === undefined && (locale === undefined || category === 'marketing')),
          'must have variables with template alone, and locale with template or the category marketing',
        ),
      ],
    },
  );
}

function isSender(text: string, ways: SendingRules['ways']): boolean {
  const parsed = parseEmailAddress(text);
  return 'value' in parsed && ways.mayBeFrom(parsed.value);
}

/** Body of `POST /sms`. */
export function smsBody(rules: SendingRules) {
  const { region } = rules.ways;
  return Type.Object(
    {
      to: Type.Refine(
        Type.String({
          minLength: 3,
          maxLength: 40,
          description: `Number of a mobile phone; of ${region} without a country`,
        }),
        (text) => 'value' in parsePhoneNumber(text, region),
        (text) => faultOf(parsePhoneNumber(text, region)),
      ),
      message: Type.Refine(
        textOf(1530, `At most ${MOST_SEGMENTS} segments`),
        (text) => text.trim() !== '' && segmentsOf(text).parts.length <= MOST_SEGMENTS,
        (text) => (text.trim() === '' ? 'must not be blank' : `must have at most ${MOST_SEGMENTS} segments`),
      ),
      ...commonMembers(rules),
    },
    strict,
  );
}

/** Body of `POST /push`. */
export function pushBody(rules: SendingRules) {
  return Type.Object(
    {
      deviceToken: textOf(4096, 'Of a browser its PushSubscription as JSON'),
      platform: Type.Optional(
        Type.Enum(pushPlatforms, {
          description: 'May be left out where the device is known, or only one is configured',
        }),
      ),
      title: Type.Optional(textOf(1000, 'What is shown first')),
      body: Type.Optional(textOf(4000, 'What is shown below')),
      data: Type.Optional(
        Type.Record(
          Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$' }),
          Type.Union([Type.String({ maxLength: 4000 }), Type.Number(), Type.Boolean()]),
          {
            maxProperties: 100,
            additionalProperties: false,
            description: 'For the app, which gets each value as text',
          },
        ),
      ),
      ...commonMembers(rules),
    },
    {
      ...strict,
      allOf: [
        together(
          ({ title, body, data }) =>
            (title ?? body) !== undefined &&
            Buffer.byteLength(JSON.stringify({ title, body, data })) <= MOST_PUSH_BYTES,
          `must have title or body, and at most ${MOST_PUSH_BYTES} bytes with data`,
        ),
      ],
    },
  );
}
