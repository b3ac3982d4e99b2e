import { freePorts } from '@rollcall/local/ports.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import type { RegistryBackend } from '@rollcall/registry/grpc/registry-service.ts';
import { createGrpcServer, type GrpcServer } from '@rollcall/registry/grpc/server.ts';
import type { Authenticate } from '@rollcall/registry/http/authentication.ts';
import { createRegistrationFeed } from '@rollcall/registry/registrations/domain/feed.ts';
import { expect, test } from 'vitest';
import { createGrpcClient } from './grpc-client.ts';

const STOPPING = { code: 14, details: 'The registry is stopping; go on with the last cursor' };
const LIMIT_MS = 20_000;

async function startServer(
  authenticate: Authenticate,
): Promise<{ readonly server: GrpcServer; readonly port: number }> {
  const [port = 0] = await freePorts(1);
  const [feed, source] = [createRegistrationFeed(10), { connected: () => true, newestVersion: async () => 0 }];
  const backend: Pick<RegistryBackend, 'feed' | 'source' | 'instances' | 'lastBeatAt'> = {
    feed,
    source,
    instances: { feed, source },
    lastBeatAt: () => undefined,
  };
  const server = createGrpcServer({
    host: '127.0.0.1',
    port,
    backend: backend as RegistryBackend,
    log: createLogger('registry', 'silent'),
    metrics: createMetrics('registry'),
    authentication: { authenticate, reads: 'authenticated' },
    tracer: undefined,
  });
  await server.start();
  return { server, port };
}

test('a watch whose token is still checked when the registry stops gets the error to resume elsewhere, and holds nothing up', async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<string>();
  const { server, port } = await startServer(() => {
    asked.resolve();
    return answer.promise;
  });
  using client = createGrpcClient(port, 'token');
  using watch = client.open('Watch', {});
  const first = watch.next();
  first.catch(() => undefined);
  await asked.promise;
  const startedAt = performance.now();
  const stopped = server.stop();
  expect(await watch.ended).toMatchObject(STOPPING);
  await stopped;
  expect(performance.now() - startedAt).toBeLessThan(LIMIT_MS);
  answer.resolve('somebody');
  await expect(first).rejects.toThrow('stopping');
});

test('a watch that begins once the others are ended gets the same', async () => {
  const { server, port } = await startServer(async () => 'somebody');
  using client = createGrpcClient(port, 'token');
  // The server still takes calls: it stops behind the HTTP door.
  server.closeStreams();
  using watch = client.open('Watch', {});
  watch.next().catch(() => undefined);
  expect(await watch.ended).toMatchObject(STOPPING);
  await server.stop();
});
