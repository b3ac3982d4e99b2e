/** What a signature of a webhook call covers. */
export interface SignedCall {
  /**
   * Of the operation at the registry itself, such as `/api/v1/webhooks/deploy`, also where the call
   * goes through the gateway.
   */
  readonly path: string;
  readonly body: string;
  /** When the call is made: it is good for five minutes. */
  readonly at: Date;
}

/**
 * The headers that prove a call: `X-Webhook-Timestamp`, and as `X-Webhook-Signature` the
 * hexadecimal HMAC-SHA256 of `<timestamp>.<path>.<body>`, after `sha256=`.
 *
 * @param secret what was given to `POST /webhooks/config`; not empty.
 */
export async function signWebhook(secret: string, { path, body, at }: SignedCall): Promise<Record<string, string>> {
  const encoder = new TextEncoder();
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
  const mac = await crypto.subtle.sign('HMAC', key, encoder.encode(`${timestamp}.${path}.${body}`));
  const hex = Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, '0'));
  return { 'x-webhook-timestamp': timestamp, 'x-webhook-signature': `sha256=${hex.join('')}` };
}
