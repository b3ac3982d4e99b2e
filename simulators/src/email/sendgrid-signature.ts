import { type KeyObject, sign } from 'node:crypto';

/**
 * Signature of SendGrid's event webhook: ECDSA on P-256 with SHA-256 over timestamp and body, as
 * base64 of DER. https://www.twilio.com/docs/sendgrid/for-developers/tracking-events
 *
 * @param timestamp Unix seconds, as they stand in the header.
 */
export function sendGridSignature(privateKey: KeyObject, timestamp: string, body: string): string {
  return sign('sha256', Buffer.from(`${timestamp}${body}`), privateKey).toString('base64');
}
