import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/**
 * One address for several replicas, as a Kubernetes Service has it: each new connection goes to one
 * that takes it.
 */
export interface ServiceProxy extends AsyncDisposable {
  readonly port: number;
}

/** @param ports of the replicas on this machine; they alternate. */
export async function startServiceProxy(ports: readonly number[]): Promise<ServiceProxy> {
  const open = new Set<Socket>();
  let turns = 0;

  async function passOn(client: Socket): Promise<void> {
    turns += 1;
    for (let attempt = 0; attempt < ports.length; attempt += 1) {
      const replica = await reach(ports[(turns + attempt) % ports.length] ?? 0);
      if (replica === undefined) continue;
      open.add(replica);
      replica.on('close', () => open.delete(replica));
      join(client, replica);
      return;
    }
    client.destroy();
  }

  const server = createServer({ pauseOnConnect: true, noDelay: true }, (client) => {
    client.on('error', () => undefined);
    void passOn(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const replica of open) replica.destroy();
      await closed;
    },
  };
}

/** @returns undefined where nobody accepts the connection. */
async function reach(port: number): Promise<Socket | undefined> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  socket.once('connect', () => resolve(socket));
  socket.on('error', () => resolve(undefined));
  return promise;
}

/** What ends at one side ends at the other. */
function join(client: Socket, replica: Socket): void {
  client.on('close', () => replica.destroy());
  replica.on('close', () => client.destroy());
  if (client.destroyed) replica.destroy();
  client.pipe(replica);
  replica.pipe(client);
}
