import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { anyAddress } from './any-address.ts';

const loopbacks = (networkInterfaces()['lo'] ?? networkInterfaces()['lo0'] ?? []).map(({ address }) => address);

test('a server on any address is reached by IPv4, and by IPv6 where there is', async () => {
  const server = createServer((socket) => socket.end()).listen({ host: await anyAddress(), port: 0 });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  for (const host of ['127.0.0.1', ...loopbacks.filter((each) => each === '::1')]) {
    const socket = connect({ host, port: port ?? 0 });
    await expect(once(socket, 'connect')).resolves.toBeDefined();
    socket.destroy();
  }
  server.close();
});

test('without IPv6 it is on all of IPv4', async () => {
  const refused = Object.assign(new Error('listen EAFNOSUPPORT: address family not supported ::'), {
    code: 'EAFNOSUPPORT',
  });
  expect(await anyAddress(() => Promise.reject(refused))).toBe('0.0.0.0');
});
