import type { AllowedAddresses } from '@rollcall/platform/outbound/address-rules.ts';
import { createPost } from '@rollcall/platform/webhooks/post.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Receiver, startReceiver } from '../support/receiver.ts';

let receiver: Receiver;
let before: number;

beforeAll(async () => {
  receiver = await startReceiver();
});

beforeEach(() => {
  before = receiver.received.length;
});

afterAll(() => receiver[Symbol.asyncDispose]());

const received = () => receiver.received.slice(before);

function post(addresses: AllowedAddresses, host: string): Promise<unknown> {
  const url = new URL(`/hook?x=1`, receiver.url);
  const to = `http://${host}:${url.port}${url.pathname}${url.search}`;
  const send = createPost(addresses);
  return send({ url: to, headers: { 'webhook-id': '1' }, body: '{"a":"ü"}' }).catch((error: unknown) => error);
}

test('a post arrives as it was given, and its status comes back, whatever the answer says more', async () => {
  receiver.answer(202, 302, 500);
  expect([await post('any', '127.0.0.1'), await post('any', 'localhost'), await post('any', '127.0.0.1')]).toEqual([
    { status: 202 },
    { status: 302 },
    { status: 500 },
  ]);
  expect(received()).toHaveLength(3);
  expect(received()[0]).toMatchObject({ path: '/hook?x=1', body: '{"a":"ü"}', headers: { 'webhook-id': '1' } });
});

test.each(['127.0.0.1', 'localhost', '127.1', '0x7f000001', '[::ffff:127.0.0.1]', '[::1]', '0.0.0.0'])(
  'nothing is sent to this machine as %s unless that is allowed',
  async (host) => {
    for (const addresses of ['public', 'cluster'] as const) {
      expect(await post(addresses, host)).toMatchObject({ code: 'ADDRESS_REFUSED' });
    }
    expect(received()).toEqual([]);
  },
);

test.each(['169.254.169.254', '[fe80::1]', '[fd00:ec2::254]', '224.0.0.1'])(
  '%s is not even tried by default',
  async (host) => {
    expect(await post('cluster', host)).toMatchObject({ code: 'ADDRESS_REFUSED' });
  },
);

test('private addresses are refused where only the internet is allowed', async () => {
  expect(await post('public', '10.0.0.1')).toMatchObject({ code: 'ADDRESS_REFUSED' });
});
