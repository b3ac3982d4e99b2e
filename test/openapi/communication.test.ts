import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { identityHeaders } from '@rollcall/platform/http/identity.ts';
import { expect, test } from 'vitest';
import { startCommunication } from '../communication/communication-service.ts';
import { createDatabase } from '../support/postgres.ts';
import { operationsOf, runSchemathesis } from './schemathesis.ts';

test('communication does what its OpenAPI document says, and nothing else', async () => {
  await using stack = new AsyncDisposableStack();
  const { url: databaseUrl } = stack.use(await createDatabase());
  const communication = stack.use(await startCommunication({ databaseUrl }));
  const front = stack.use(await startGateway(communication.service.url));
  const api = `${front.url}/api/v1`;
  const { code, report, cases, operations } = await runSchemathesis(api, [
    '--max-examples',
    '5',
    '--header',
    `Authorization: Bearer ${await communication.identityOf('shop')}`,
  ]);
  if (code !== 0) throw new Error(report);
  expect(operations).toBe(await operationsOf(api));
  expect(cases).toBeGreaterThan(1000);
});

interface Gateway extends AsyncDisposable {
  readonly url: string;
}

/** Says by a header of its own who calls, as a gateway does. What callers show is the identity itself. */
async function startGateway(service: string): Promise<Gateway> {
  const target = new URL(service);
  const server = createServer({ maxHeaderSize: 128 * 1024 }, (incoming, outgoing) => {
    const { authorization = '', ...headers } = incoming.headers;
    const identity = /^Bearer (\S+)$/.exec(authorization)?.[1];
    const { method, url: path } = incoming;
    const passed = request(
      {
        host: target.hostname,
        port: target.port,
        method,
        path,
        headers: { ...headers, ...(identity === undefined ? {} : { [identityHeaders.token]: identity }) },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
