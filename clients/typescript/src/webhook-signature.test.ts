import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { signWebhook } from './webhook-signature.ts';

it('signs the bytes of the body as HMAC-SHA256 in hexadecimal', async () => {
  const body = '{"service_name":"Straße"}';
  const expected = createHmac('sha256', 'top secret').update(body, 'utf8').digest('hex');
  expect(await signWebhook('top secret', body)).toBe(`sha256=${expected}`);
});

it('agrees with RFC 4231, test case 2', async () => {
  expect(await signWebhook('Jefe', 'what do ya want for nothing?')).toBe(
    'sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
});
