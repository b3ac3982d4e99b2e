import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { nonGsmCharacters, segmentsOf } from './segments.ts';

const MOST_ENTRIES = 30_000;
const MOST_PARTS = 3;
const ENCODINGS = { TEXT: 'GSM-7', UNICODE: 'UCS-2' } as const;
const INTERNATIONAL = /^\+?[1-9]\d{6,14}$/;

const Recipient = Type.Union([
  Type.String(),
  Type.Object({ type: Type.Optional(Type.Literal('INTERNATIONAL')), address: Type.String() }),
]);
const Sender = Type.Union([
  Type.String(),
  Type.Object({
    type: Type.Enum(['INTERNATIONAL', 'ALPHANUMERIC', 'SHORTCODE', 'REPLIABLE']),
    address: Type.Optional(Type.String()),
  }),
]);
const Entry = Type.Object({
  to: Type.Union([Recipient, Type.Array(Recipient, { minItems: 1 })]),
  body: Type.String({ minLength: 1 }),
  from: Type.Optional(Sender),
  encoding: Type.Optional(Type.Enum(['TEXT', 'UNICODE', 'BINARY'])),
  deliveryReports: Type.Optional(Type.Enum(['ALL', 'ERRORS', 'NONE'])),
  longMessageMaxParts: Type.Optional(Type.Integer({ minimum: 1, maximum: 99 })),
  userSuppliedId: Type.Optional(Type.String({ maxLength: 20 })),
});
type Entry = Static<typeof Entry>;

/** A message as it goes to a phone. */
export interface BulkSmsText {
  /** E.164 without the plus sign. */
  readonly to: string;
  readonly from: string | undefined;
  /** What is left of the text, where that has more parts than allowed. */
  readonly body: string;
  readonly encoding: 'TEXT' | 'UNICODE' | 'BINARY';
  readonly parts: number;
  readonly deliveryReports: 'ALL' | 'ERRORS' | 'NONE';
  readonly userSuppliedId: string | undefined;
}

/**
 * The messages of a submission, which is one entry or a list of them, each with one recipient or
 * several.
 *
 * @param isAutoUnicode whether text that is not in GSM-7 becomes Unicode; else `?` replaces it.
 * @throws Error with what BulkSMS says in `detail`.
 */
export function parseSubmission(value: unknown, isAutoUnicode: boolean): readonly BulkSmsText[] {
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (entries.length === 0 || entries.length > MOST_ENTRIES) throw new Error('Send 1 to 30 000 messages');
  return entries.flatMap((entry, index) => {
    if (Value.Check(Entry, entry)) return textsOf(entry, isAutoUnicode);
    const [fault] = Value.Errors(Entry, entry);
    throw new Error(`Message ${index}: ${fault?.instancePath ?? ''} ${fault?.message ?? 'is invalid'}`);
  });
}

function textsOf(entry: Entry, isAutoUnicode: boolean): readonly BulkSmsText[] {
  const { to, from, deliveryReports = 'ALL', userSuppliedId } = entry;
  const sender = from === undefined ? undefined : senderOf(from);
  const content = contentOf(entry, isAutoUnicode);
  return [to].flat().map((recipient) => {
    const address = typeof recipient === 'string' ? recipient : recipient.address;
    if (!INTERNATIONAL.test(address)) throw new Error(`'${address}' is not a phone number`);
    return { to: address.replace('+', ''), from: sender, deliveryReports, userSuppliedId, ...content };
  });
}

function contentOf(
  { body, encoding: given = 'TEXT', longMessageMaxParts: most = MOST_PARTS }: Entry,
  isAutoUnicode: boolean,
): Pick<BulkSmsText, 'body' | 'encoding' | 'parts'> {
  if (given === 'BINARY') {
    if (!/^(?:[0-9a-f]{2})+$/i.test(body)) throw new Error('A binary body is made of hexadecimal digits');
    return { body, encoding: given, parts: Math.ceil(body.length / 2 / 140) };
  }
  const strange = given === 'TEXT' ? nonGsmCharacters(body) : [];
  const encoding = strange.length > 0 && isAutoUnicode ? 'UNICODE' : given;
  const text = encoding === 'TEXT' ? replaceAll(body, strange) : body;
  const parts = segmentsOf(text, ENCODINGS[encoding]).slice(0, most);
  return { body: parts.join(''), encoding, parts: parts.length };
}

function replaceAll(text: string, characters: readonly string[]): string {
  return characters.reduce((left, character) => left.replaceAll(character, '?'), text);
}

function senderOf(from: Static<typeof Sender>): string | undefined {
  const address = typeof from === 'string' ? from : (from.address ?? '');
  const isName = !address.startsWith('+') && /\D/.test(address);
  const type = typeof from === 'string' ? (isName ? 'ALPHANUMERIC' : 'INTERNATIONAL') : from.type;
  const isGood = {
    ALPHANUMERIC: /^.{1,11}$/,
    INTERNATIONAL,
    SHORTCODE: /^\d{1,6}$/,
    REPLIABLE: /^$/,
  }[type].test(address);
  if (!isGood) throw new Error(`'${address}' cannot be the sender of type ${type}`);
  return type === 'REPLIABLE' ? undefined : address;
}
