import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { startAll } from './all.ts';

test('every simulator starts under a name of its own, and says how to be its client', async () => {
  await using started = new AsyncDisposableStack();
  const simulators = await startAll(0);
  for (const simulator of simulators) started.use(simulator);
  expect(new Set(simulators.map(({ name }) => name)).size).toBe(simulators.length);
  for (const { url } of simulators) {
    expect(new URL(url).hostname).toBe('127.0.0.1');
    const answer = await fetch(`${url}/_control/credentials`);
    expect(JSON.stringify(await answer.json())).toContain(url);
  }
});

test('none is left behind where one cannot start', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(startAll(taken)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  server.close();
});
