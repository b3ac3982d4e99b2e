import { SegmentedMessage } from 'sms-segments-calculator';

/** `auto`: GSM-7 where every character is in it, else UCS-2. */
type Encoding = 'auto' | 'GSM-7' | 'UCS-2';

/** The text of each part of an SMS, as Twilio's own calculator parts it. */
export function segmentsOf(text: string, encoding: Encoding = 'auto'): readonly string[] {
  const { segments } = new SegmentedMessage(text, encoding);
  return segments.map((segment) => Array.from<unknown>(segment).map(rawOf).join(''));
}

/** The characters that are not in GSM-7 (3GPP TS 23.038). */
export function nonGsmCharacters(text: string): readonly string[] {
  return new SegmentedMessage(text).getNonGsmCharacters();
}

/** A part also holds headers, which are no text. */
function rawOf(unit: unknown): string {
  return typeof unit === 'object' && unit !== null && 'raw' in unit && typeof unit.raw === 'string' ? unit.raw : '';
}
