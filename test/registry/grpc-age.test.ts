import { freePorts } from '@rollcall/local/ports.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import type { RegistryBackend } from '@rollcall/registry/grpc/registry-service.ts';
import { createGrpcServer } from '@rollcall/registry/grpc/server.ts';
import { createRegistrationFeed } from '@rollcall/registry/registrations/domain/feed.ts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createGrpcClient } from './grpc-client.ts';

const MINUTES = 30;
const STEP_MS = 5000;

/** Lets what is on its way arrive. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('a stream that is quiet stays open for half an hour, and ends in order', async () => {
  const [port = 0] = await freePorts(1);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const [feed, source] = [createRegistrationFeed(10), { connected: () => true, newestVersion: async () => 0 }];
  const quiet: Pick<RegistryBackend, 'feed' | 'source' | 'instances' | 'lastBeatAt'> = {
    feed,
    source,
    instances: { feed, source },
    lastBeatAt: () => undefined,
  };
  const server = createGrpcServer({
    host: '127.0.0.1',
    port,
    backend: quiet as RegistryBackend,
    log: createLogger('registry', 'silent'),
    metrics: createMetrics('registry'),
    authentication: undefined,
    tracer: undefined,
  });
  await server.start();
  using client = createGrpcClient(port);
  using watch = client.open('Watch', {});
  const ends: unknown[] = [];
  void watch.ended.then((status) => ends.push(status));
  const synced = watch.next();
  await turns();
  expect(await synced).toMatchObject({ type: 'TYPE_SYNCED' });
  for (let passedMs = 0; passedMs < MINUTES * 60_000; passedMs += STEP_MS) {
    await vi.advanceTimersByTimeAsync(STEP_MS);
    await turns();
  }
  expect(ends).toEqual([]);
  server.closeStreams();
  await turns();
  expect(ends).toMatchObject([{ details: 'The registry is stopping; go on with the last cursor' }]);
  vi.useRealTimers();
  await server.stop();
});
