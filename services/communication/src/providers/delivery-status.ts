import { hash } from 'node:crypto';
import { storableText } from '@rollcall/platform/outbound/foreign-text.ts';
import PostalMime from 'postal-mime';
import type { ProviderReport } from '../domain/ports.ts';
import { isUnknownAddress, statusCodeOf } from '../domain/smtp-status.ts';
import type { Receipt } from '../domain/states.ts';

const STATUS_PARTS = new Set(['message/delivery-status', 'message/global-delivery-status']);
const RETURNED_PARTS = new Set(['text/rfc822-headers', 'message/rfc822', 'message/global-headers', 'message/global']);
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** Our mails have one recipient in a transaction, and some copies. */
const MOST_RECIPIENTS = 200;

/** Names in lower case. */
type Fields = ReadonlyMap<string, string>;

/**
 * What a mail server says of a mail that it could not deliver, or not yet, or did (RFC 3464). The
 * class of the status decides, not the action: a server that gave up on a mailbox that is full says
 * `failed`, and 4.2.2.
 *
 * @param mail as it came, in bytes.
 * @returns undefined where it is no such mail, or none of ours.
 */
export async function readDeliveryStatus(mail: Uint8Array): Promise<readonly ProviderReport[] | undefined> {
  const { to = [], attachments = [] } = (await parsed(mail)) ?? {};
  const status = attachments.find(({ mimeType }) => STATUS_PARTS.has(mimeType));
  if (status === undefined) return undefined;
  const [ofMail = new Map(), ...ofRecipients] = groupsOf(textOf(status));
  const returned = attachments.find(({ mimeType }) => RETURNED_PARTS.has(mimeType));
  const messageId =
    idIn(ofMail.get('original-envelope-id'), `^(${UUID})$`) ??
    to.map(({ address }) => idIn(address, `^bounces\\+(${UUID})@`)).find((id) => id !== undefined) ??
    idIn(returned === undefined ? undefined : textOf(returned), `^message-id:\\s*<(${UUID})@`);
  if (messageId === undefined) return undefined;
  return ofRecipients.slice(0, MOST_RECIPIENTS).flatMap((fields) => reportOf(fields, messageId));
}

/** @returns undefined where it goes deeper or has longer heads than any mail. */
async function parsed(mail: Uint8Array) {
  try {
    return await PostalMime.parse(mail, { attachmentEncoding: 'utf8' });
  } catch {
    return undefined;
  }
}

function textOf({ content }: { readonly content: unknown }): string {
  return typeof content === 'string' ? storableText(content) : '';
}

/** Groups of fields, with empty lines between them (RFC 3464, section 2.1). */
function groupsOf(text: string): readonly Fields[] {
  const unfolded = text.replaceAll('\r\n', '\n').replaceAll(/\n[ \t]+/g, ' ');
  const groups = unfolded.split(/\n{2,}/).map((group) => {
    const fields = group.split('\n').map((line) => /^([\w-]+):(.*)$/.exec(line));
    return new Map(fields.flatMap((field) => (field ? [[`${field[1]}`.toLowerCase(), `${field[2]}`.trim()]] : [])));
  });
  return groups.filter(({ size }) => size > 0);
}

function idIn(text: string | undefined, pattern: string): string | undefined {
  return text === undefined ? undefined : new RegExp(pattern, 'im').exec(text)?.[1]?.toLowerCase();
}

function reportOf(fields: Fields, messageId: string): readonly ProviderReport[] {
  const action = fields.get('action')?.toLowerCase() ?? '';
  const status = statusCodeOf(fields.get('status') ?? '');
  // To whom we sent it: behind a forwarding the final one is nobody whom we know.
  const recipient = addressIn(fields.get('original-recipient')) ?? addressIn(fields.get('final-recipient'));
  if (status === undefined || recipient === undefined) return [];
  const receipt = receiptOf(action);
  return [
    {
      eventKey: hash('sha256', `${messageId} ${recipient.toLowerCase()} ${action} ${status}`, 'base64url'),
      messageId,
      recipient,
      ...(receipt !== undefined && { receipt }),
      reason: status,
      isUnproven: true,
      ...(action === 'failed' && isUnknownAddress(status) && { suppress: { kind: 'address-unknown' } }),
    },
  ];
}

/** `delayed` moves nothing. `relayed` and `expanded`: another server has it, which may say no more. */
function receiptOf(action: string): Receipt | undefined {
  if (action === 'failed') return 'bounced';
  if (action === 'delivered') return 'delivered';
  return action === 'relayed' || action === 'expanded' ? 'sent' : undefined;
}

/** `rfc822; ana@example.com`. */
function addressIn(field: string | undefined): string | undefined {
  const [, address] = /^(?:rfc822|utf-8);\s*<?([^\s<>;]+@[^\s<>;]+?)>?$/i.exec(field ?? '') ?? [];
  return address;
}
