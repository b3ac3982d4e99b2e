import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { request } from 'undici';

/** The ways of a gateway to payment, and nothing else of one. */
export interface Front extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly url: string;
  /** Where requests go from now on, by turns. */
  leadTo(...urls: readonly string[]): void;
}

/** Of the gateway; the service has no name of its own in its paths. */
const API = '/api/v1/payment/';

/** Longer than callers keep connections: nobody sends on one that ends just then. */
const KEPT = { keepAliveTimeout: 120_000 };

/** Listens before the service does, which is told this address. */
export async function startFront(): Promise<Front> {
  let targets: readonly string[] = [];
  let turn = 0;
  const server = createServer(KEPT, (incoming, outgoing) => {
    turn += 1;
    passOn(incoming, outgoing, targets[turn % targets.length]).catch(() => outgoing.writeHead(502).end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo(...urls) {
      targets = urls;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

async function passOn(incoming: IncomingMessage, outgoing: ServerResponse, target: string | undefined): Promise<void> {
  const { method = 'GET', url = '/', headers } = incoming;
  const path = url.startsWith(API) ? `/api/v1/${url.slice(API.length)}` : url;
  const body = await buffer(incoming);
  const { host: _host, connection: _connection, 'transfer-encoding': _coding, ...kept } = headers;
  const answer = await request(`${target}${path}`, {
    method: method === 'POST' ? 'POST' : 'GET',
    headers: { ...kept, 'x-real-ip': '127.0.0.1' },
    ...(method === 'POST' ? { body } : {}),
  });
  outgoing.writeHead(answer.statusCode, answer.headers);
  outgoing.end(Buffer.from(await answer.body.arrayBuffer()));
}
