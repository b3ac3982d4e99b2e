import { createServer, type Socket } from 'node:net';
import { createPool, inTransaction, isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';

/** A message of the server (PostgreSQL manual, "Message Formats"). */
function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const authenticationOk = message('R', Buffer.alloc(4));
const readyForQuery = message('Z', Buffer.from('I'));
const shuttingDown = message(
  'E',
  Buffer.from('SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'),
);

test('a server that ends in the very packet that makes the connection fails the work, not the process', async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.concat([authenticationOk, readyForQuery, shuttingDown])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const url = `postgres://user:password@127.0.0.1:${port}/any`;
  const pool = createPool({ url, schema: 'any', maxConnections: 2, log: createLogger('test', 'silent') });
  try {
    for (const work of [() => inTransaction(pool, async () => 'done'), () => pool.query('SELECT 1')]) {
      const failure = await Promise.resolve(work()).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(isDatabaseUnavailable(failure)).toBe(true);
    }
    expect(sockets.length).toBeGreaterThanOrEqual(2);
  } finally {
    await pool.end();
    server.close();
  }
});
