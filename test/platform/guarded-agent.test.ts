import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { AddressRefusedError, type AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import { isPublicAddress } from '@rollcall/platform/outbound/address-scope.ts';
import { createGuardedAgent, guardedLookup } from '@rollcall/platform/outbound/guarded-agent.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';

let server: Server;
let port: number;
let connections = 0;

beforeAll(async () => {
  server = createServer((_request, response) => response.end('hello'));
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port');
  port = address.port;
});

beforeEach(() => {
  connections = 0;
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

async function get(host: string, mayConnect: AddressRule): Promise<string> {
  const agent = createGuardedAgent({ mayConnect, connectTimeoutMs: 10_000, keepAlive: false });
  try {
    const { origin } = new URL(`http://${host}:${port}`);
    const { body } = await agent.request({ origin, path: '/', method: 'GET' });
    return await body.text();
  } finally {
    await agent.close();
  }
}

test.each(['127.0.0.1', 'localhost', '0x7f000001', '127.1'])('%s is reached where the rule allows it', async (host) => {
  const asked: string[] = [];
  const mayConnect = (address: string) => asked.push(address) > 0;
  expect(await get(host, mayConnect)).toBe('hello');
  expect(asked).toContain('127.0.0.1');
});

test.each([
  '127.0.0.1',
  'localhost',
  '0x7f000001',
  '127.1',
  '2130706433',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '0.0.0.0',
  '[::]',
])('%s is not connected to where the rule forbids it', async (host) => {
  const error = await get(host, isPublicAddress).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(AddressRefusedError);
  expect(error).toMatchObject({ code: 'ADDRESS_REFUSED', message: expect.stringContaining('not allowed') });
  expect(connections).toBe(0);
});

test('of the addresses of a name only the allowed ones are tried', async () => {
  // Both are this machine's; nobody listens at the second one.
  expect(await get('localhost', (address) => address === '127.0.0.1')).toBe('hello');
  expect(connections).toBe(1);
});

/** A name server whose answers change: what an attacker has. */
function changing(...answers: readonly LookupAddress[][]) {
  const rest = [...answers];
  const resolve = (_name: string, _options: unknown, callback: (error: null, found: LookupAddress[]) => void) =>
    callback(null, rest.shift() ?? []);
  return resolve as unknown as NonNullable<Parameters<typeof guardedLookup>[1]>;
}

function lookUp(resolve: ReturnType<typeof changing>, all: boolean): Promise<unknown> {
  return new Promise((done) => {
    guardedLookup(isPublicAddress, resolve)('rebind.example.com', { all }, (error, address) => done(error ?? address));
  });
}

test('a name is judged by the answer that is connected to, not by an earlier one', async () => {
  const outside = { address: '8.8.8.8', family: 4 };
  const inside = { address: '169.254.169.254', family: 4 };
  const resolve = changing([outside], [inside], [inside, outside], [inside, outside], []);
  expect(await lookUp(resolve, true)).toEqual([outside]);
  expect(await lookUp(resolve, true)).toMatchObject({
    code: 'ADDRESS_REFUSED',
    message: 'Connections to rebind.example.com (169.254.169.254) are not allowed',
  });
  expect(await lookUp(resolve, true)).toEqual([outside]);
  expect(await lookUp(resolve, false)).toBe('8.8.8.8');
  expect(await lookUp(resolve, true)).toBeInstanceOf(AddressRefusedError);
});

test('a name that does not resolve fails as it always does', async () => {
  const error = await get('nowhere.invalid', isPublicAddress).catch((error: unknown) => error);
  expect(error).toMatchObject({ code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/) });
});

test("a 100 that nobody asked for is passed over, by Node's own copy of undici as well", async () => {
  const eager = createSocketServer((socket) => {
    socket.once('data', () =>
      socket.end('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'),
    );
  });
  eager.listen(0, '127.0.0.1');
  await once(eager, 'listening');
  const { port: eagerPort } = eager.address() as AddressInfo;
  const agent = createGuardedAgent({ mayConnect: () => true, connectTimeoutMs: 10_000, keepAlive: false });
  const origin = `http://127.0.0.1:${eagerPort}`;
  const byFetch = await fetch(origin, { method: 'POST', body: 'x' });
  expect(await byFetch.text()).toBe('ok');
  const { body } = await agent.request({ origin, path: '/', method: 'POST', body: 'x' });
  expect(await body.text()).toBe('ok');
  await agent.close();
  eager.close();
});
