import { fork } from 'node:child_process';
import { once } from 'node:events';
import { waitUntil } from '@rollcall/local/wait.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createEchoClient, gaugeOf, startBackend, startProxy, TOKEN } from '../gateway/grpc-fixture.ts';

/** As many as a gateway takes. */
const SOCKETS = 10_000;
/** Longer than it takes to open them. */
const IDLE_MS = 20_000;

/**
 * Opens so many connections that say what a client says first, in another process, and keeps them.
 */
async function occupy(port: number, count: number): Promise<void> {
  const child = fork('test/heavy/idle-connections.ts', [String(port), String(count)], { silent: true });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
}

test('all connections are taken by who calls nothing: others get in once these are idle, and those with calls stay', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, limits: { idleMs: IDLE_MS } });
  using early = createEchoClient(proxy.port, { token: TOKEN });
  const stream = early.bidi();
  stream.on('error', () => undefined);
  stream.write(Buffer.from('early'));
  await once(stream, 'data');
  await occupy(proxy.port, SOCKETS);
  await waitUntil('the connections are taken', async () => (await gaugeOf(proxy, 'connections')) >= SOCKETS * 0.98, {
    timeoutMs: 30_000,
  });
  expect(await gaugeOf(proxy, 'connections')).toBeLessThanOrEqual(SOCKETS);
  const late = async (): Promise<string | undefined> => {
    using client = createEchoClient(proxy.port, { token: TOKEN });
    const { message } = await client.unary(Buffer.from('late'), {}, { deadline: Date.now() + 5000 });
    return message?.toString();
  };
  expect(await late()).toBeUndefined();
  await waitUntil('others get in', async () => (await late()) === 'late', { timeoutMs: 3 * IDLE_MS });
  stream.write(Buffer.from('still there'));
  expect(String((await once(stream, 'data'))[0])).toBe('still there');
  stream.end();
}, 120_000);
