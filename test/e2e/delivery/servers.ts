import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { TestContext } from 'vitest';
import { POD_ADDRESSES } from './cluster.ts';

type Finishing = Pick<TestContext, 'onTestFinished'>;

/** @returns the server, which is closed when the test ends, and its port. */
async function listen({ onTestFinished }: Finishing, listener: RequestListener, at: { host: string; port: number }) {
  const server: Server = createServer(listener);
  server.listen(at.port, at.host);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const bound = server.address();
  return { server, port: typeof bound === 'object' && bound !== null ? bound.port : 0 };
}

/** Answers at every address that a pod may get. @returns the port. */
export async function servePods(test: Finishing, answer: (host: string) => Promise<string>): Promise<number> {
  let port = 0;
  for (const host of POD_ADDRESSES) {
    ({ port } = await listen(test, (_, response) => void answer(host).then((text) => response.end(text)), {
      host,
      port,
    }));
  }
  return port;
}

/** Answers every request with the status; undefined: never. @returns the URL and the server. */
export async function serveStatus(
  test: Finishing,
  status: () => number | undefined,
): Promise<{ readonly url: string; readonly server: Server }> {
  const answer: RequestListener = (_, response) => {
    const code = status();
    if (code !== undefined) response.writeHead(code).end('{}');
  };
  const { server, port } = await listen(test, answer, { host: '127.0.0.1', port: 0 });
  return { server, url: `http://127.0.0.1:${port}` };
}
