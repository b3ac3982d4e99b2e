import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createGraphqlWebSockets } from './websockets.ts';

const HEADERS = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': `${'A'.repeat(22)}==`,
  'sec-websocket-protocol': 'graphql-transport-ws',
};
/** Of one address. */
const MOST = 1000;

test('who leaves while its credentials are checked takes no place', async () => {
  const checked = Promise.withResolvers<undefined>();
  let checking = 0;
  const webSockets = createGraphqlWebSockets({
    begin: () => () => undefined,
    requireContract: () => undefined,
    readCaller() {
      checking += 1;
      return checked.promise;
    },
    carried: () => ({}),
    clock: systemClock,
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
  });
  const ask = () => {
    const request = new IncomingMessage(new Socket());
    Object.assign(request, { method: 'GET', url: '/api/graphql' });
    request.headers = HEADERS;
    const [client, server] = duplexPair();
    webSockets.handleUpgrade(request, server, Buffer.alloc(0));
    return { client, server };
  };
  const gone = Array.from({ length: MOST }, ask);
  expect(checking).toBe(MOST);
  const closed = gone.map(({ server }) => once(server, 'close'));
  for (const { server } of gone) server.destroy();
  await Promise.all(closed);
  const { client } = ask();
  const answer = once(client, 'data');
  checked.resolve(undefined);
  expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 101 /);
  client.destroy();
  webSockets.close();
});
