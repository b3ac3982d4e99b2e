import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';

// npm svix 1.99.1, npm and PyPI standardwebhooks agreed on it; Yoco has published none.
const BODY =
  '{"id":"evt_N1","type":"payment.succeeded","createdDate":"2026-11-20T10:00:00.000000Z","payload":{"id":"p_1","type":"payment","createdDate":"2026-11-20T09:59:58.000000Z","amount":14950,"currency":"ZAR","status":"succeeded","mode":"test","metadata":{"checkoutId":"ch_1"}}}';

test('the library signs as was recorded', () => {
  const webhook = new Webhook('whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX');
  const signature = 'v1,wVkTGdLxFfnhnMs6N/UOp+2ePXzyxzLqg+kSd9hQDeQ=';
  expect(webhook.sign('msg_2abc', new Date(1_795_168_800_000), BODY)).toBe(signature);
});
