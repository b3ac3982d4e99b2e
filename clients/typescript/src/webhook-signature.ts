/**
 * The value of the header `X-Webhook-Signature`: `sha256=` and the hexadecimal HMAC-SHA256 of the exact bytes of the body.
 *
 * @param secret what was given to `POST /webhooks/config`; not empty.
 */
export async function signWebhook(secret: string, body: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
  const mac = await crypto.subtle.sign('HMAC', key, encoder.encode(body));
  const hex = Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, '0'));
  return `sha256=${hex.join('')}`;
}
