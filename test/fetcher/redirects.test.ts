import { isPublicAddress } from '@rollcall/platform/outbound/address-scope.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type ArtifactServer, redirect, status, whole } from './artifact-server.ts';
import { type FetcherFixture, startFetcherFixture } from './fixture.ts';

let fixture: FetcherFixture;
let other: ArtifactServer;
/** Of the first server, before the test. */
let before: number;
/** Of the other server, before the test. */
let otherBefore: number;

beforeAll(async () => {
  fixture = await startFetcherFixture();
  other = await fixture.startServer();
  other.answer(whole(fixture.content));
});

beforeEach(() => {
  before = fixture.server.requests.length;
  otherBefore = other.connections;
});

afterAll(() => fixture[Symbol.asyncDispose]());

const requests = () => fixture.server.requests.slice(before);

test.each([301, 302, 303, 307, 308])('%d is followed', async (code) => {
  fixture.server.answer(redirect('/elsewhere?x=1', code), whole(fixture.content));
  expect(await fixture.fetch()).toMatchObject({ error: undefined, names: ['shop'] });
  expect(requests().map(({ path }) => path)).toEqual(['/shop', '/elsewhere?x=1']);
});

test('five redirects are followed, a loop is not', async () => {
  const steps = ['/1', '/2', '/3', '/4', '/5'].map((path) => redirect(path));
  fixture.server.answer(...steps, whole(fixture.content));
  expect(await fixture.fetch()).toMatchObject({ error: undefined });
  before = fixture.server.requests.length;
  fixture.server.answer(redirect('/shop'));
  const fetched = await fixture.fetch();
  expect(fetched).toMatchObject({ names: [], error: { code: 'FAILED', message: 'More than 5 redirects' } });
  expect(requests()).toHaveLength(6);
});

test('credentials go with redirects of their origin, and no further', async () => {
  const authorization = 'Bearer s3cret';
  fixture.server.answer(redirect('/second'), redirect(`${other.origin}/third`), whole(fixture.content));
  other.answer(redirect(`${fixture.server.origin}/fourth`), whole(fixture.content));
  expect(await fixture.fetch({ authorization })).toMatchObject({ error: undefined });
  expect(requests().map(({ path, headers }) => [path, headers.authorization])).toEqual([
    ['/shop', authorization],
    ['/second', authorization],
    ['/fourth', undefined],
  ]);
  expect(other.requests.at(-1)).toMatchObject({ path: '/third', headers: { host: new URL(other.origin).host } });
  expect(other.requests.at(-1)?.headers).not.toHaveProperty('authorization');
});

test('credentials in the URL of a redirect are not sent', async () => {
  fixture.server.answer(redirect(`https://user:pw@127.0.0.1:${other.port}/x`));
  expect(await fixture.fetch()).toMatchObject({ error: undefined });
  expect(other.requests.at(-1)?.headers).not.toHaveProperty('authorization');
});

test('what a target of a redirect says is reported without its path, which may be a secret', async () => {
  other.answer(status(403), whole(fixture.content));
  fixture.server.answer(redirect(`${other.origin}/s3cret?signature=s3cret`));
  const { error } = await fixture.fetch();
  expect(String(error)).toContain(`${other.origin} answered 403`);
  expect(String(error)).not.toContain('s3cret');
});

test.each([
  { to: 'http://127.0.0.1/', code: 'ADDRESS_REFUSED', says: 'http: URL' },
  { to: 'file:///etc/passwd', code: 'ADDRESS_REFUSED', says: 'file: URL' },
  { to: 'data:,x', code: 'ADDRESS_REFUSED', says: 'data: URL' },
  { to: 'https://', code: 'FAILED', says: 'no URL' },
])('a redirect to $to is refused', async ({ to, code, says }) => {
  fixture.server.answer(redirect(to));
  const fetched = await fixture.fetch();
  expect(fetched).toMatchObject({ names: [], reports: [], error: { code, message: expect.stringContaining(says) } });
  expect(requests()).toHaveLength(1);
});

test.each([
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  '0177.0.0.1',
  '2130706433',
  '127.0.0.1.',
  '%31%32%37.0.0.1',
  'localhost',
  'LOCALHOST',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[64:ff9b::127.0.0.1]',
  '[::]',
  '0.0.0.0',
  '0',
])('a redirect to this machine as %s is refused before anything is connected', async (host) => {
  fixture.server.answer(redirect(`https://${host}:${other.port}/x`));
  let asked = 0;
  // The server itself is on this machine: only the first address is let through by another rule
  // than the real one.
  const mayConnect = (address: string) => (asked++ === 0 ? address === '127.0.0.1' : isPublicAddress(address));
  const fetched = await fixture.fetch({ mayConnect });
  expect(fetched).toMatchObject({ names: [], reports: [], error: { code: 'ADDRESS_REFUSED' } });
  expect(requests()).toHaveLength(1);
  expect(asked).toBeGreaterThan(1);
  expect(other.connections).toBe(otherBefore);
});

test.each(['169.254.169.254', '10.0.0.1', '[fd00::1]', '[fe80::1]', '100.64.0.1', '[2002:7f00:1::]'])(
  'a redirect to %s is refused',
  async (host) => {
    fixture.server.answer(redirect(`https://${host}/latest/meta-data/`));
    let asked = 0;
    const mayConnect = (address: string) => asked++ === 0 || isPublicAddress(address);
    const fetched = await fixture.fetch({ mayConnect });
    expect(fetched).toMatchObject({ names: [], reports: [], error: { code: 'ADDRESS_REFUSED' } });
    expect(asked).toBe(2);
  },
);
