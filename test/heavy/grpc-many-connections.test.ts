import { fork } from 'node:child_process';
import { once } from 'node:events';
import { waitUntil } from '@rollcall/local/wait.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createEchoClient, gaugeOf, startBackend, startProxy, TOKEN } from '../gateway/grpc-fixture.ts';

/** As many as a gateway takes. */
const SOCKETS = 10_000;

/**
 * Opens so many connections that say what a client says first, in another process, and keeps them.
 */
async function occupy(port: number, count: number): Promise<void> {
  const child = fork('test/heavy/idle-connections.ts', [String(port), String(count)], { silent: true });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
}

test('all slots are used by connections without a call: others get in, and those with calls stay', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, limits: { handshakeTimeoutMs: 60_000 } });
  using early = createEchoClient(proxy.port, { token: TOKEN });
  const stream = early.bidi();
  stream.on('error', () => undefined);
  stream.write(Buffer.from('early'));
  await once(stream, 'data');
  await occupy(proxy.port, SOCKETS);
  await waitUntil('the slots are used', async () => (await gaugeOf(proxy, 'connections')) >= SOCKETS * 0.98, {
    timeoutMs: 30_000,
  });
  for (let count = 0; count < 50; count += 1) {
    using late = createEchoClient(proxy.port, { token: TOKEN });
    const { error, message } = await late.unary(Buffer.from('late'), {}, { deadline: Date.now() + 5000 });
    expect([error, message?.toString()]).toEqual([undefined, 'late']);
  }
  expect(await gaugeOf(proxy, 'connections')).toBeLessThanOrEqual(SOCKETS);
  stream.write(Buffer.from('still there'));
  expect(String((await once(stream, 'data'))[0])).toBe('still there');
  stream.end();
}, 120_000);
