import { createECDH, randomBytes } from 'node:crypto';
import { possibleTargets } from '@rollcall/communication/domain/devices.ts';
import type { PushTarget } from '@rollcall/communication/domain/recipients.ts';
import { createDeviceTable, type DeviceTable } from '@rollcall/communication/store/devices.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import {
  type Caller,
  type CommunicationService,
  codeOf,
  faultPaths,
  startCommunication,
} from './communication-service.ts';

const stack = new AsyncDisposableStack();
const keys = [{ id: 'one', key: randomBytes(32) }];
let communication: CommunicationService;
let shop: Caller;
let pool: Pool;
let devices: DeviceTable;

beforeAll(async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  const written = keys.map(({ id, key }) => ({ id, key: key.toString('base64') }));
  communication = stack.use(await startCommunication({ databaseUrl, keys: written }));
  pool = createPool({
    url: databaseUrl,
    schema: 'communication',
    maxConnections: 4,
    log: createLogger('test', 'silent'),
  });
  stack.defer(() => pool.end());
  devices = tableWith(...keys);
  shop = await communication.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

function tableWith(...each: { id: string; key: Uint8Array }[]): DeviceTable {
  return createDeviceTable({
    pool: () => pool,
    vault: createVault(each),
    index: createBlindIndex(each, 'device'),
    users: createBlindIndex(each, 'device user'),
  });
}

const fcmToken = () => `fcm:${randomBytes(40).toString('base64url')}`;
const known = (token: string, subject = 'shop') => devices.find(subject, possibleTargets(token));
const fcm = (token: string): PushTarget => ({ platform: 'fcm', token });

function subscription(): string {
  const browser = createECDH('prime256v1');
  browser.generateKeys();
  return JSON.stringify({
    endpoint: `https://push.example/send/${randomBytes(8).toString('hex')}?a=1`,
    keys: { p256dh: browser.getPublicKey('base64url'), auth: randomBytes(16).toString('base64url') },
  });
}

test('a device is registered, found, registered again and forgotten', async () => {
  const token = fcmToken();
  const body = { platform: 'fcm', user: 'customer 7', app: 'shop' };
  const made = await shop('PUT', `/devices/${token}`, { body });
  expect([made.status, made.body]).toEqual([201, { ...body, registeredAt: expect.any(String) }]);
  expect(await known(token)).toEqual({ platform: 'fcm', isGone: false });
  expect(await known(token, 'other')).toBeUndefined();
  const again = await shop('PUT', `/devices/${token}`, { body: { platform: 'fcm' } });
  expect(again.status).toBe(200);
  expect(Date.parse(String(again.body?.['registeredAt']))).toBeGreaterThan(
    Date.parse(String(made.body?.['registeredAt'])),
  );
  const other = await communication.callerOf('other');
  expect((await other('DELETE', `/devices/${token}`)).status).toBe(404);
  expect((await other('DELETE', `/devices/${token}?subject=shop`)).status).toBe(404);
  expect((await shop('DELETE', `/devices/${token}`)).status).toBe(204);
  expect((await shop('DELETE', `/devices/${token}`)).status).toBe(404);
  expect(await known(token)).toBeUndefined();
});

const tokens = ({ devices: listed }: { devices: { token: string }[] }) => listed.map(({ token }) => token);

test('devices are listed, also those of one user, and none of others or that are gone', async () => {
  const lister = await communication.callerOf('lister');
  const browser = Buffer.from(subscription()).toString('base64url');
  const [mine, gone, theirs] = [fcmToken(), fcmToken(), fcmToken()];
  for (const [token, body] of [
    [mine, { platform: 'fcm', user: 'Ada', app: 'shop' }],
    [gone, { platform: 'fcm', user: 'Ada' }],
    [browser, { platform: 'webpush', user: 'Ada' }],
    [theirs, { platform: 'fcm', user: 'Bo' }],
  ] as const)
    await lister('PUT', `/devices/${token}`, { body });
  await devices.forget('lister', fcm(gone), new Date(Date.now() + 60_000));
  const list = async (query: string) => {
    const { status, body } = await lister('GET', `/devices${query}`);
    expect(status).toBe(200);
    return body as { devices: { token: string }[]; total: number; nextCursor: string | null };
  };
  expect(tokens(await list(''))).toEqual([theirs, browser, mine]);
  const ofAda = await list('?user=Ada');
  expect([ofAda.total, tokens(ofAda)]).toEqual([2, [browser, mine]]);
  expect(ofAda.devices[1]).toEqual({
    token: mine,
    platform: 'fcm',
    user: 'Ada',
    app: 'shop',
    registeredAt: expect.any(String),
  });
  const first = await list('?user=Ada&limit=1');
  expect(tokens(await list(`?user=Ada&limit=1&cursor=${first.nextCursor}`))).toEqual([mine]);
  expect((await list('?user=ada')).total).toBe(0);
  // Who is listed can be forgotten by what the list says.
  expect((await lister('DELETE', `/devices/${tokens(ofAda)[0]}`)).status).toBe(204);
  await lister('PUT', `/devices/${mine}`, { body: { platform: 'fcm' } });
  expect((await list('?user=Ada')).total).toBe(0);
  expect((await shop('GET', '/devices?user=Ada')).body).toMatchObject({ devices: [], total: 0 });
  expect((await shop('GET', '/devices?subject=lister')).status).toBe(404);
  expect((await (await communication.callerOf('lister', 'messages:send'))('GET', '/devices')).status).toBe(403);
  const faulty = await lister('GET', '/devices?user=a%00b&limit=0&more=1');
  expect([faulty.status, faultPaths(faulty)]).toEqual([400, ['query/limit', 'query/more', 'query/user']]);
});

test('a token of APNs is the same in capitals, and a browser is known by its endpoint', async () => {
  const apns = randomBytes(32).toString('hex');
  expect((await shop('PUT', `/devices/${apns.toUpperCase()}`, { body: { platform: 'apns' } })).status).toBe(201);
  expect(await known(apns)).toEqual({ platform: 'apns', isGone: false });
  const json = subscription();
  const inPath = Buffer.from(json).toString('base64url');
  expect((await shop('PUT', `/devices/${inPath}`, { body: { platform: 'webpush' } })).status).toBe(201);
  expect(await known(json)).toEqual({ platform: 'webpush', isGone: false });
  expect((await shop('DELETE', `/devices/${inPath}`)).status).toBe(204);
});

test.each([
  ['short', 'fcm'],
  ['a%2Fb'.repeat(10), 'fcm'],
  [`${'a'.repeat(30)}%0D%0A`, 'fcm'],
  [`${'a'.repeat(30)}%00`, 'fcm'],
  ['zz'.repeat(32), 'apns'],
  [Buffer.from('{"endpoint":"http://x.example"}').toString('base64url'), 'webpush'],
  ['ü'.repeat(40), 'fcm'],
])('%s is no token of %s', async (token, platform) => {
  const answer = await shop('PUT', `/devices/${token}`, { body: { platform } });
  expect([answer.status, codeOf(answer), faultPaths(answer)]).toEqual([400, 'INVALID_REQUEST', ['path/token']]);
});

test('all faults of a body are named', async () => {
  const body = { platform: 'pager', user: 'a\r\nb', app: '', more: 1 };
  const answer = await shop('PUT', `/devices/${fcmToken()}`, { body });
  expect(faultPaths(answer)).toEqual(['body/app', 'body/more', 'body/platform', 'body/user']);
});

test('a registration that is newer than what its provider says survives, and one that is older does not', async () => {
  const token = fcmToken();
  const before = new Date(Date.now() - 60_000);
  await shop('PUT', `/devices/${token}`, { body: { platform: 'fcm' } });
  await devices.forget('shop', fcm(token), before);
  expect(await known(token)).toEqual({ platform: 'fcm', isGone: false });
  await devices.forget('other', fcm(token), new Date(Date.now() + 60_000));
  expect(await known(token)).toEqual({ platform: 'fcm', isGone: false });
  await devices.forget('shop', fcm(token), new Date(Date.now() + 60_000));
  expect(await known(token)).toEqual({ platform: 'fcm', isGone: true });
  expect((await shop('DELETE', `/devices/${token}`)).status).toBe(404);
  expect((await shop('PUT', `/devices/${token}`, { body: { platform: 'fcm' } })).status).toBe(201);
  expect(await known(token)).toEqual({ platform: 'fcm', isGone: false });
});

test('a token that nobody registered is remembered as gone', async () => {
  const token = fcmToken();
  await devices.forget('shop', fcm(token), new Date());
  expect(await known(token)).toEqual({ platform: 'fcm', isGone: true });
});

test('of a token that is registered and reported at once, in any order, the newer of the two holds', async () => {
  for (let round = 0; round < 20; round += 1) {
    const token = fcmToken();
    await Promise.all([
      devices.forget('shop', fcm(token), new Date(Date.now() - 60_000)),
      devices.register('shop', { target: fcm(token), user: undefined, app: undefined }),
      devices.forget('shop', fcm(token), new Date(Date.now() - 30_000)),
    ]);
    expect(await known(token)).toEqual({ platform: 'fcm', isGone: false });
  }
});

test('a device that an older key has indexed is the same', async () => {
  const token = fcmToken();
  const device = { target: fcm(token), user: undefined, app: undefined };
  await devices.register('shop', device);
  const rotated = tableWith({ id: 'two', key: randomBytes(32) }, ...keys);
  expect(await rotated.find('shop', [fcm(token)])).toEqual({ platform: 'fcm', isGone: false });
  expect((await rotated.register('shop', device)).isNew).toBe(false);
  expect(await known(token)).toBeUndefined();
  expect(await rotated.remove('shop', [fcm(token)])).toBe(true);
});

test('the database has neither tokens nor users in plain', async () => {
  const token = fcmToken();
  await shop('PUT', `/devices/${token}`, { body: { platform: 'fcm', user: 'plain-user' } });
  const { rows } = await pool.query('SELECT d::text AS text FROM devices d');
  for (const { text } of rows) {
    for (const secret of [token, 'plain-user']) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString('hex'));
    }
  }
});

test('tokens that are long gone are forgotten, and devices never', async () => {
  const [gone, there] = [fcmToken(), fcmToken()];
  await devices.forget('shop', fcm(gone), new Date(Date.now() - 181 * 86_400_000));
  await shop('PUT', `/devices/${there}`, { body: { platform: 'fcm' } });
  expect(await devices.prune(100)).toBe(1);
  expect(await known(gone)).toBeUndefined();
  expect(await known(there)).toBeDefined();
});
