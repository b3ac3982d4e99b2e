import { SegmentedMessage } from 'sms-segments-calculator';

/** The text of each part of an SMS, as Twilio's own calculator parts it. */
export function segmentsOf(text: string): readonly string[] {
  const { segments } = new SegmentedMessage(text);
  return segments.map((segment) => Array.from<unknown>(segment).map(rawOf).join(''));
}

/** A part also holds headers, which are no text. */
function rawOf(unit: unknown): string {
  return typeof unit === 'object' && unit !== null && 'raw' in unit && typeof unit.raw === 'string' ? unit.raw : '';
}
