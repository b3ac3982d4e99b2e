import { once } from 'node:events';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What stands for a gateway: hands requests to `/api/v1/communication/…` on, as they came. */
export interface Forwarder extends AsyncDisposable {
  readonly url: string;
  /** @param services URLs of replicas, which get requests by turns; they are known later than that of the forwarder. */
  leadTo(...services: readonly string[]): void;
}

/** Starts one on 127.0.0.1. Until it leads anywhere, and where nobody answers, it answers 502. */
export async function startForwarder(): Promise<Forwarder> {
  let targets: readonly string[] = [];
  let turn = 0;
  const server = createServer((incoming, outgoing) => {
    const fail = () => outgoing.writeHead(502).end();
    const path = (incoming.url ?? '').replace('/api/v1/communication/', '/api/v1/');
    turn += 1;
    const target = targets[turn % targets.length];
    if (target === undefined) {
      fail();
      return;
    }
    const { method, headers } = incoming;
    const onward = ask(`${target}${path}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', fail);
    incoming.pipe(onward);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo(...services) {
      targets = services;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
