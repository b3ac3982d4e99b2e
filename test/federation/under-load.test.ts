import { expect, test } from 'vitest';
import { changeUnderLoad } from './changes-under-load.ts';
import { startFederation } from './federation-service.ts';
import { startSubgraph } from './subgraph-server.ts';

test('no query fails while the graph changes fifty times, and no graph is kept', { timeout: 240_000 }, async () => {
  const { wrong, queries, generation, schemasLeft } = await changeUnderLoad(50);
  expect(wrong).toEqual([]);
  expect(queries).toBeGreaterThan(50);
  expect(generation).toBe(52);
  await expect.poll(schemasLeft).toBeLessThan(20);
});

test('each of two thousand callers gets an answer of its own, however many ask at once', async () => {
  const { call } = await startFederation();
  const server = await startSubgraph({ sdl: 'type Query { me: String }' });
  await call('POST', '/schemas/introspect', { body: { serviceUrl: server.url, name: 'me' } });
  server.misbehave((response) =>
    setImmediate(() => response.end(JSON.stringify({ data: { me: response.req.headers['accept-language'] } }))),
  );
  const ask = async (caller: string) => {
    const headers = { 'accept-language': caller };
    return (await call('POST', '/graphql', { body: { query: '{ me }' }, headers })).body;
  };
  for (let from = 0; from < 2000; from += 200) {
    const callers = Array.from({ length: 200 }, (_, n) => `x-caller-${from + n}`);
    expect(await Promise.all(callers.map(ask))).toEqual(callers.map((me) => ({ data: { me } })));
  }
});
