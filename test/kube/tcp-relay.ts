import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/**
 * Passes bytes on to a local port, until it is set to swallow them: a network that fails without a
 * word.
 */
export interface TcpRelay extends AsyncDisposable {
  readonly port: number;
  /** All connections so far. */
  readonly accepted: number;
  readonly open: number;
  /** How many pieces of data were swallowed. */
  readonly swallowed: number;
  /** From now on nothing gets through in either direction, and no connection is closed. */
  blackHole(): void;
  /** New connections work again; what was swallowed is lost. */
  heal(): void;
  /** From now on everything waits, new connections too: a network that is slow beyond measure. */
  hold(): void;
  /** What has waited goes on. */
  release(): void;
}

export async function startTcpRelay(targetPort: number): Promise<TcpRelay> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let accepted = 0;
  let swallowed = 0;
  let blackHole = false;
  let held = false;

  const server = createServer({ allowHalfOpen: false }, (client) => {
    accepted += 1;
    const target = connect({ port: targetPort, host: '127.0.0.1' });
    const pair = [client, target] as const;
    pairs.add(pair);
    let lost = false;
    const forward = (from: Socket, to: Socket) => {
      from.on('data', (chunk: Buffer) => {
        lost ||= blackHole;
        if (lost) swallowed += 1;
        else to.write(chunk);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        pairs.delete(pair);
        if (!lost || from === client) to.destroy();
      });
    };
    forward(client, target);
    forward(target, client);
    if (held) for (const socket of pair) socket.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The relay has no port');

  return {
    port: address.port,
    get accepted() {
      return accepted;
    },
    get open() {
      return pairs.size;
    },
    get swallowed() {
      return swallowed;
    },
    blackHole() {
      blackHole = true;
    },
    heal() {
      blackHole = false;
    },
    hold() {
      held = true;
      for (const pair of pairs) for (const socket of pair) socket.pause();
    },
    release() {
      held = false;
      for (const pair of pairs) for (const socket of pair) socket.resume();
    },
    async [Symbol.asyncDispose]() {
      for (const [client, target] of pairs) {
        client.destroy();
        target.destroy();
      }
      server.close();
      await once(server, 'close');
    },
  };
}
