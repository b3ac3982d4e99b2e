import { randomUUID } from 'node:crypto';
import { storableText } from '@rollcall/platform/outbound/foreign-text.ts';
import type { Pdu } from 'smpp';
import type { MessageProvider, OutgoingSms, ProviderReport, RefusalCause, SendOutcome } from '../domain/ports.ts';
import { segmentsOf } from '../domain/segments.ts';
import type { Receipt } from '../domain/states.ts';
import { createSmppLink, type SmppAnswer, type SmppLinkSettings } from './smpp-link.ts';
import { reportsOfAnswer } from './sms-answers.ts';

export interface SmppSettings extends SmppLinkSettings {
  /** A number or a name that the account may send from. */
  readonly sender: string;
  /** Whether receipts have in decimal what answers have in hexadecimal, as many centres do. */
  readonly receiptIds: ReceiptIds;
}

type ReceiptIds = 'same' | 'decimal';

/** Command statuses of SMPP 3.4, section 5.1.3. Others say that it was not taken, too. */
const REFUSALS: Readonly<Record<number, RefusalCause>> = {
  // RINVMSGLEN
  1: 'content',
  // RINVSRCADR
  10: 'sender',
  // RINVDSTADR
  11: 'recipient',
  // RBINDFAIL, RINVPASWD, RINVSYSID
  13: 'credentials',
  14: 'credentials',
  15: 'credentials',
  // RINVSRCTON, RINVSRCNPI
  72: 'sender',
  73: 'sender',
};
/** RMSGQFUL, RTHROTTLED. */
const SLOWER: ReadonlySet<number> = new Set([20, 88]);
const SLOWER_MS = 1000;

/** Section 5.2.28 and, in the words of receipts, appendix B. */
const STATES = ['', 'ENROUTE', 'DELIVRD', 'EXPIRED', 'DELETED', 'UNDELIV', 'ACCEPTD', 'UNKNOWN', 'REJECTD'];
const RECEIPTS: Readonly<Record<string, Receipt>> = {
  ENROUTE: 'sent',
  ACCEPTD: 'sent',
  DELIVRD: 'delivered',
  EXPIRED: 'bounced',
  DELETED: 'bounced',
  UNDELIV: 'bounced',
  REJECTD: 'bounced',
};

/** What `short_message` can have, section 5.2.22. */
const SHORT_OCTETS = 254;
const UCS_2 = 8;
const INTERNATIONAL = { ton: 1, npi: 1 };
const ALPHANUMERIC = { ton: 5, npi: 0 };
const SHORT_CODE = { ton: 3, npi: 0 };

/**
 * SMS by a message centre, SMPP 3.4. A long text goes in one request, as `message_payload`, so that
 * the centre takes all of it or nothing. There is no idempotency key, and no lookup without the
 * centre's own id.
 */
export function createSmpp({ sender, receiptIds, ...settings }: SmppSettings): MessageProvider<OutgoingSms> {
  const link = createSmppLink(settings);
  const source = addressOf(sender);
  return {
    name: 'smpp',
    channel: 'sms',
    async send({ to, text }, signal) {
      const fields = {
        source_addr: sender.replace(/^\+/, ''),
        source_addr_ton: source.ton,
        source_addr_npi: source.npi,
        destination_addr: to.replace(/^\+/, ''),
        dest_addr_ton: INTERNATIONAL.ton,
        dest_addr_npi: INTERNATIONAL.npi,
        registered_delivery: 1,
        ...textFields(text),
      };
      return outcomeOf(await link.submit(fields, signal), receiptIds);
    },
    onReports(keep) {
      link.receive(async (pdu) => {
        const reports = reportsOf(pdu, receiptIds);
        if (reports.length > 0) await keep(reports);
      });
    },
    close: () => link.close(),
  };
}

function addressOf(sender: string): typeof INTERNATIONAL {
  if (/^\+?\d{7,15}$/.test(sender)) return INTERNATIONAL;
  return /^\d{1,6}$/.test(sender) ? SHORT_CODE : ALPHANUMERIC;
}

function textFields(text: string): Readonly<Record<string, unknown>> {
  const isGsm = segmentsOf(text).encoding === 'GSM-7';
  const message = { message: isGsm ? text : Buffer.from(text, 'utf16le').swap16() };
  const coding = { data_coding: isGsm ? 0 : UCS_2 };
  // In either alphabet a character has two octets at most.
  return 2 * text.length <= SHORT_OCTETS
    ? { ...coding, short_message: message }
    : { ...coding, short_message: '', message_payload: message };
}

/** Pure. What an answer says of the message. */
function outcomeOf(answer: SmppAnswer, receiptIds: ReceiptIds): SendOutcome {
  if (answer === 'lost') return { outcome: 'unknown', reason: 'no answer' };
  if (answer === 'unsent') return { outcome: 'failed', reason: 'no session' };
  const { command_status: status, message_id: id = '' } = answer;
  if (status !== 0) return refusalOf(status);
  const providerId = storableText(id);
  if (providerId === '') return { outcome: 'unknown', reason: 'no message_id' };
  return { outcome: 'accepted', providerId: receiptIds === 'decimal' ? plainHex(`0x${providerId}`) : providerId };
}

/** The same for a number, however it is written; what is no number stays. */
function plainHex(text: string): string {
  return /^(?:0x[\da-f]{1,64}|\d{1,64})$/i.test(text) ? BigInt(text).toString(16) : text;
}

function refusalOf(status: number): SendOutcome {
  const reason = `smpp ${status}`;
  const cause = REFUSALS[status];
  if (cause !== undefined) return { outcome: 'refused', cause, reason };
  return { outcome: 'failed', reason, ...(SLOWER.has(status) && { retryAfterMs: SLOWER_MS }) };
}

/** Of `esm_class`, section 5.2.12. */
const KIND = 0x3c;
const RECEIPT = 0x04;

function reportsOf(pdu: Pdu, receiptIds: ReceiptIds): readonly ProviderReport[] {
  const kind = (pdu.esm_class ?? 0) & KIND;
  if (kind === RECEIPT) return [reportOf(pdu, receiptIds)].filter((report) => report !== undefined);
  return kind === 0 ? answersOf(pdu) : [];
}

/** What a person wrote. It has no id: who says STOP, START and STOP says three things. */
function answersOf({ source_addr: from = '', short_message: short, message_payload: long }: Pdu) {
  const text = String(short?.message ?? '') || String(long?.message ?? '');
  return reportsOfAnswer({ id: randomUUID(), from, text });
}

/** A receipt, by its fields or by its text (appendix B). */
function reportOf(pdu: Pdu, receiptIds: ReceiptIds): ProviderReport | undefined {
  const { short_message: short, receipted_message_id: given, message_state: stateNumber } = pdu;
  const text = storableText(String(short?.message ?? ''));
  const id = (given && storableText(given)) ?? /\bid:(\S+)/i.exec(text)?.[1];
  const state = STATES[stateNumber ?? -1] ?? /\bstat:([A-Z]+)/i.exec(text)?.[1]?.toUpperCase().slice(0, 7);
  if (id === undefined || id === '' || state === undefined) return undefined;
  const providerId = receiptIds === 'decimal' ? plainHex(id) : id;
  const receipt = RECEIPTS[state];
  const error = /\berr:(\w{1,8})/i.exec(text)?.[1];
  return {
    eventKey: `${providerId}:${state}`,
    providerId,
    ...(receipt !== undefined && { receipt }),
    reason: error === undefined ? state : `${state} ${error}`,
  };
}
