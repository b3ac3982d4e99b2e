import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { MockAgent } from 'undici';
import { expect, test } from 'vitest';
import webPush from 'web-push';
import type { SendOutcome } from '../domain/ports.ts';
import { createOutlets, signalOf } from './outlets.ts';
import { parseProviders } from './providers-file.ts';

let nowMs = 0;
const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs };

function outletsOf(file: unknown) {
  return createOutlets(parseProviders(JSON.stringify(file), { addresses: 'any' }), {
    dispatcher: new MockAgent(),
    mayConnect: addressRules.any,
    clock,
    notificationsUrl: (name) => `https://gateway.example/${name}`,
    quotas: { take: async () => false, giveBack: async () => {}, usesOf: async () => new Map() },
  });
}

const smtp = { kind: 'smtp', host: '127.0.0.1', port: 1, tls: 'none', bounceDomain: 'shop.example' };
const bulksms = { kind: 'bulksms', user: 'id', password: 'secret', notificationToken: 'token-of-notifications' };
const vapid = { subject: 'mailto:a@b.example', ...webPush.generateVAPIDKeys() };
const names = (route: readonly { readonly provider: string }[]) => route.map(({ provider }) => provider);
const metadata = {};

test('mail goes by providers that may send from its sender', async () => {
  const outlets = await outletsOf({
    email: {
      from: { address: 'shop@shop.example' },
      providers: [
        { ...smtp, name: 'usual' },
        { ...smtp, name: 'domain', senders: ['@shop.example'] },
        { ...smtp, name: 'other', senders: ['news@news.example'] },
      ],
    },
  });
  const route = (from: string) => names(outlets.routeOf('email', { to: 'a@b.example', from, metadata }));
  expect(route('shop@shop.example')).toEqual(['usual', 'domain']);
  expect(route('help@shop.example')).toEqual(['domain']);
  expect(route('news@news.example')).toEqual(['other']);
  expect(route('help@evil-shop.example')).toEqual([]);
  expect([outlets.ways.mayBeFrom('news@news.example'), outlets.ways.mayBeFrom('a@bank.example')]).toEqual([
    true,
    false,
  ]);
  await outlets.close();
});

test('an SMS goes by the order of its country, a push message by the service of its device', async () => {
  const outlets = await outletsOf({
    sms: {
      byCountry: { DE: ['second', 'first'] },
      providers: [
        { ...bulksms, name: 'first' },
        { ...bulksms, name: 'second', priority: 1 },
      ],
    },
    push: { providers: [{ kind: 'webpush', name: 'browsers', vapid }] },
  });
  const route = (country: string) => outlets.routeOf('sms', { to: '+1', country, metadata });
  expect(route('ZA').map(({ provider, priority }) => [provider, priority])).toEqual([
    ['first', 0],
    ['second', 1],
  ]);
  expect(names(route('DE'))).toEqual(['second', 'first']);
  expect(names(outlets.routeOf('push', { to: 't', platform: 'webpush', metadata }))).toEqual(['browsers']);
  expect(outlets.ways.has('push', { platform: 'fcm' })).toBe(false);
  expect(outlets.ways.platforms).toEqual(['webpush']);
  await outlets.close();
});

test('a provider is called no more often than its rate', async () => {
  const outlets = await outletsOf({ sms: { providers: [{ ...bulksms, name: 'slow', ratePerSecond: 4 }] } });
  const slow = outlets.find('slow');
  if (slow === undefined) throw new Error('The provider is not there');
  const { signal } = new AbortController();
  expect(await slow.acquire(signal)).toBe(0);
  expect(slow.availableInMs()).toBe(250);
  // Those whose turn is soon wait for it; the others get a place each in a line.
  const soon = Array.from({ length: 4 }, () => slow.acquire(signal));
  expect(slow.availableInMs()).toBe(1250);
  const later = await Promise.all(Array.from({ length: 3 }, () => slow.acquire(signal)));
  expect(later).toEqual([1250, 1500, 1750]);
  expect(await Promise.all(soon)).toEqual([0, 0, 0, 0]);
  nowMs += 1250;
  expect(await slow.acquire(signal)).toBe(0);
  expect(slow.availableInMs()).toBe(250);
  await outlets.close();
});

test.each<[SendOutcome, ReturnType<typeof signalOf>]>([
  [{ outcome: 'accepted', providerId: '1' }, 'good'],
  [{ outcome: 'refused', cause: 'recipient', reason: '550 5.1.1' }, 'good'],
  [{ outcome: 'refused', cause: 'credit', reason: '402' }, 'bad'],
  [{ outcome: 'failed', reason: '450 4.2.2' }, 'none'],
  [{ outcome: 'failed', reason: '429' }, 'none'],
  [{ outcome: 'failed', reason: '429 TooManyRequests' }, 'none'],
  [{ outcome: 'failed', reason: 'smpp 88', retryAfterMs: 1000 }, 'none'],
  [{ outcome: 'failed', reason: 'smpp 8' }, 'bad'],
  [{ outcome: 'failed', reason: '503' }, 'bad'],
  [{ outcome: 'failed', reason: 'ECONNREFUSED' }, 'bad'],
  [{ outcome: 'unknown', reason: 'timeout' }, 'bad'],
])('%j says of the provider: %s', (outcome, said) => {
  expect(signalOf(outcome)).toBe(said);
});

test('a provider that fails says why, since when, and when it is tried again', async () => {
  const outlets = await outletsOf({
    email: { from: { address: 'shop@shop.example' }, providers: [{ ...smtp, name: 'post' }] },
  });
  expect(await outlets.health()).toMatchObject([
    { status: 'available', lastError: null, failingSince: null, nextTryAt: null },
  ]);
  const way = outlets.find('post');
  const mail = {
    channel: 'email',
    id: '1f0e1d2c-0000-4000-8000-000000000000',
    deduplicationId: 1,
    from: { address: 'shop@shop.example' },
    to: { address: 'a@b.example' },
    cc: [],
    bcc: [],
    subject: 'x',
    text: 'x',
    attachments: [],
  } as const;
  const since = new Date(nowMs).toISOString();
  for (let call = 0; call < 5; call += 1) await way?.send(mail, AbortSignal.timeout(10_000));
  expect(await outlets.health()).toMatchObject([
    {
      status: 'failing',
      lastError: { reason: 'not-reached', at: since },
      failingSince: since,
      nextTryAt: expect.any(String),
    },
  ]);
  await outlets.close();
});
