import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * What to listen on to be reached by every address of this machine: `::`, which includes IPv4, or
 * `0.0.0.0` where the kernel has no IPv6.
 *
 * @param listen fails where an address cannot be listened on; for tests.
 */
export async function anyAddress(listen: (host: string) => Promise<void> = listenOnce): Promise<string> {
  return listen('::').then(
    () => '::',
    () => '0.0.0.0',
  );
}

async function listenOnce(host: string): Promise<void> {
  const server = createServer().listen({ host, port: 0 });
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
