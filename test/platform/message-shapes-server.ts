// `node --expose-gc --allow-natives-syntax message-shapes-server.ts`: has the admin server of a
// process asked a few times with collections of garbage between, and prints whether requests and
// responses have fast properties then.
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { runInThisContext } from 'node:vm';
import { adminServer } from '@rollcall/platform/process/admin.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';

const hasFastProperties = runInThisContext('(object) => %HasFastProperties(object)') as (object: object) => boolean;

adminServer({ host: '127.0.0.1', port: 0, metrics: createMetrics('test'), unready: () => undefined });
let seen: readonly boolean[] = [];
const server = createServer((request, response) => {
  seen = [hasFastProperties(request), hasFastProperties(response)];
  response.setHeader('etag', '"1"').end('body');
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
for (let asked = 0; asked < 30; asked += 1) {
  const [response] = await once(get({ host: '127.0.0.1', port, agent: false }), 'response');
  response.resume();
  await once(response, 'end');
  // What is weak goes only with a collection after the one that found it unused.
  if (asked < 12) for (let collected = 0; collected < 3; collected += 1) globalThis.gc?.();
}
console.log(JSON.stringify(seen));
server.close();
