import { createHmac } from 'node:crypto';

/**
 * `X-Twilio-Signature` of a form: HMAC-SHA1 over the URL as it was given, and each name and value
 * by the order of names. https://www.twilio.com/docs/usage/webhooks/webhooks-security
 */
export function twilioSignature(authToken: string, url: string, fields: Readonly<Record<string, string>>): string {
  const signed = Object.keys(fields)
    .sort()
    .map((name) => `${name}${fields[name]}`)
    .join('');
  return createHmac('sha1', authToken).update(url).update(signed).digest('base64');
}
