import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { signWebhook } from './webhook-signature.ts';

it('signs the time, the path and the bytes of the body as HMAC-SHA256 in hexadecimal', async () => {
  const body = '{"service_name":"Straße"}';
  const path = '/api/v1/webhooks/deploy';
  const signed = `1790000000.${path}.${body}`;
  const expected = createHmac('sha256', 'top secret').update(signed, 'utf8').digest('hex');
  expect(await signWebhook('top secret', { path, body, at: new Date(1_790_000_000_999) })).toEqual({
    'x-webhook-timestamp': '1790000000',
    'x-webhook-signature': `sha256=${expected}`,
  });
});
