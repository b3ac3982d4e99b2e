import { randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createUnsubscribeLinks, type Subscription } from '@rollcall/communication/domain/unsubscribe.ts';
import { createVault } from '@rollcall/platform/vault.ts';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, type CommunicationService, startCommunication } from './communication-service.ts';

const keys = [{ id: 'one', key: randomBytes(32) }];
const vault = createVault(keys);
const stack = new AsyncDisposableStack();
let databaseUrl: string;
let communication: CommunicationService;
let shop: Caller;

beforeAll(async () => {
  ({ url: databaseUrl } = stack.use(await createDatabase()));
  const written = keys.map(({ id, key }) => ({ id, key: key.toString('base64') }));
  communication = stack.use(await startCommunication({ databaseUrl, keys: written }));
  shop = await communication.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

let recipient: string;
let url: string;

beforeEach(() => {
  recipient = `ana-${randomBytes(4).toString('hex')}@example.com`;
  url = linkOf({ subject: 'shop', recipient, messageId: randomUUID() });
});

/** Where the gateway would lead the link of a mail. */
function linkOf(subscription: Subscription, links = createUnsubscribeLinks(vault, 'https://gateway.example')): string {
  const { origin, pathname } = new URL(links.urlOf(subscription));
  expect(origin).toBe('https://gateway.example');
  return `${communication.service.url}${pathname}`;
}

async function reasons(): Promise<unknown[]> {
  const { body = {} } = await shop('GET', `/suppressions?recipient=${recipient}`);
  return (body['suppressions'] as { reason: string; scope: string }[]).map(({ reason, scope }) => `${reason} ${scope}`);
}

const post = (form: Record<string, string>) => fetch(url, { method: 'POST', body: new URLSearchParams(form) });
const ONE_CLICK = { 'List-Unsubscribe': 'One-Click' };

test('looking at a link, with whatever, changes nothing and shows a page with a button', async () => {
  for (const method of ['GET', 'HEAD']) {
    const answer = await fetch(`${url}?List-Unsubscribe=One-Click`, { method });
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex, nofollow',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'/,
      ),
    });
    expect(answer.headers.get('set-cookie')).toBeNull();
    const page = await answer.text();
    const form = /<html lang="en">[^]*<form method="post">[^]*<button>Unsubscribe<\/button>/;
    expect(page).toMatch(method === 'HEAD' ? /^$/ : form);
    expect(page).not.toContain(recipient);
    expect(page).not.toMatch(/<script| style=| on\w+=/i);
  }
  expect(await reasons()).toEqual([]);
});

test.each([
  ['af-ZA,af;q=0.9,en;q=0.8', 'af', 'Teken uit'],
  ['xx, pt-BR;q=0.5', 'pt-BR', 'Cancelar inscrição'],
  ['ja', 'en', 'Unsubscribe'],
])('who reads %s sees a page of %s', async (accepted, language, button) => {
  const headers = { 'accept-language': accepted };
  const page = await (await fetch(url, { headers })).text();
  expect(page).toContain(`<html lang="${language}">`);
  expect(page).toContain(`<button>${button}</button>`);
  expect(page).toContain(`a…@example.com`);
  expect(page).not.toContain('{address}');
});

test('one click of a mailbox provider acts at once, of either kind of form, and twice is fine', async () => {
  const multipart = new FormData();
  multipart.set('List-Unsubscribe', 'One-Click');
  for (const body of [multipart, new URLSearchParams(ONE_CLICK)]) {
    const answer = await fetch(url, { method: 'POST', body, redirect: 'error' });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('Subscribe again');
    expect(await reasons()).toEqual(['unsubscribe marketing']);
  }
});

test('who subscribes again undoes that alone', async () => {
  await shop('PUT', `/suppressions/${recipient}`);
  await post(ONE_CLICK);
  expect((await reasons()).toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
    'manual all',
    'unsubscribe marketing',
  ]);
  const again = await post({ subscribe: 'again' });
  expect([again.status, (await again.text()).includes('Subscribed again')]).toEqual([200, true]);
  expect(await reasons()).toEqual(['manual all']);
});

test.each([
  ['an empty body', {}],
  ['another form', { body: new URLSearchParams({ 'List-Unsubscribe': 'Two-Clicks' }) }],
  ['a form that is none', { body: 'x'.repeat(100), headers: { 'content-type': 'multipart/form-data; boundary=none' } }],
  ['JSON', { body: '{"List-Unsubscribe":"One-Click"}', headers: { 'content-type': 'application/json' } }],
])('%s changes nothing', async (_what, request) => {
  expect((await fetch(url, { method: 'POST', ...request })).status).toBe(400);
  expect(await reasons()).toEqual([]);
});

test('a body that is too large, or of a type that is no form, is refused', async () => {
  expect((await post({ 'List-Unsubscribe': 'One-Click', x: 'x'.repeat(5000) })).status).toBe(413);
  const text = { 'content-type': 'text/plain' };
  expect((await fetch(url, { method: 'POST', body: 'List-Unsubscribe=One-Click', headers: text })).status).toBe(415);
  expect(await reasons()).toEqual([]);
});

test('a token that was changed, of another key or of another purpose, is none', async () => {
  const subscription = { subject: 'shop', recipient, messageId: randomUUID() };
  const strange = createVault([{ id: 'one', key: randomBytes(32) }]);
  const other = vault.seal(JSON.stringify(['shop', recipient, randomUUID()]), 'something else');
  const bytes = Buffer.from(url.slice(url.lastIndexOf('/') + 1), 'base64url');
  const changed = Array.from(bytes, (byte, index) => Buffer.from(bytes.with(index, byte ^ 1)));
  const tokens = [...changed, other, Buffer.from([]), Buffer.from([255]), bytes.subarray(0, 20)];
  const links = [
    linkOf(subscription, createUnsubscribeLinks(strange, 'https://gateway.example')),
    ...tokens.map((token) => new URL(`/unsubscribe/${token.toString('base64url') || '-'}`, url).href),
    `${url}=`,
    new URL('/unsubscribe/%00', url).href,
    new URL(`/unsubscribe/${'a'.repeat(20_000 / 4)}`, url).href,
  ];
  for (const link of links) {
    const answer = await fetch(link, { method: 'POST', body: new URLSearchParams(ONE_CLICK) });
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
  }
  expect(await reasons()).toEqual([]);
});

test('links work on when another key is the newest', () => {
  const subscription = { subject: 'shop', recipient, messageId: randomUUID() };
  const rotated = createUnsubscribeLinks(createVault([{ id: 'two', key: randomBytes(32) }, ...keys]), '');
  const token = createUnsubscribeLinks(vault, '').urlOf(subscription).slice('/unsubscribe/'.length);
  expect(rotated.read(token)).toEqual(subscription);
});

test('where it cannot be kept, a page says so, and the log has no address and no token', async () => {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    // As a server that is being restored answers.
    await client.query('ALTER TABLE communication.suppressions RENAME TO away');
    await client.query(`CREATE FUNCTION communication.shutting_down() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'shutting down' USING ERRCODE = '57P01'; END $$`);
    await client.query('CREATE TABLE communication.suppressions (LIKE communication.away INCLUDING ALL)');
    await client.query(`CREATE TRIGGER shut BEFORE INSERT ON communication.suppressions
      EXECUTE FUNCTION communication.shutting_down()`);
    const answer = await post(ONE_CLICK);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await answer.text()).toContain('Please try again');
  } finally {
    await client.query('DROP TABLE communication.suppressions');
    await client.query('ALTER TABLE communication.away RENAME TO suppressions');
    await client.end();
  }
  expect((await post(ONE_CLICK)).status).toBe(200);
  const log = await readFile(communication.service.logFile, 'utf8');
  expect(log).toContain('an opt-out could not be kept');
  expect(log).not.toContain(recipient);
  expect(log).not.toContain(url.slice(-30));
});
