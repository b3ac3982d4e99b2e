import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What may become of an answer on its way. */
type Spoiling = 'garbage' | 'half' | 'reset';

/** A way to a server, of TCP connections, that can spoil an answer. */
export interface Relay extends AsyncDisposable {
  /** On 127.0.0.1. */
  readonly port: number;
  /** The next bytes that come down are the answer. */
  spoil(how: Spoiling): void;
}

/** No protocol begins an answer so. */
const GARBAGE = 'It works!\r\n\r\n<html><body>It works!</body></html>\r\n';

/** @param upstreamPort of a server on 127.0.0.1. */
export async function startRelay(upstreamPort: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  let spoiling: Spoiling | undefined;
  const server = createServer((client) => {
    const upstream = connect(upstreamPort, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => sockets.delete(socket));
    }
    client.on('data', (bytes) => upstream.write(bytes));
    client.once('close', () => upstream.destroy());
    upstream.on('data', (bytes: Buffer) => {
      const how = spoiling;
      spoiling = undefined;
      if (how === undefined) client.write(bytes);
      else spoilt(client, bytes, how);
    });
    upstream.once('close', () => client.end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    spoil(how) {
      spoiling = how;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

function spoilt(client: Socket, bytes: Buffer, how: Spoiling): void {
  if (how === 'garbage') client.write(GARBAGE);
  else if (how === 'half') client.end(bytes.subarray(0, Math.floor(bytes.length / 2)));
  else client.resetAndDestroy();
}
