import { readFile } from 'node:fs/promises';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, startBackend, startGatewayProcess, tokenOf } from '../gateway/gateway.ts';
import { createGrpcClient } from '../registry/grpc-client.ts';
import { type EventStream, openEventStream } from '../support/event-stream.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';

const SIZE = 1000;
const NAME = 'many';
const AT_ONCE = 32;
/** Of a gateway, for all of them. */
const MOST_MIB = 40;

let registry: Replica;
let gateway: Replica;
let grpcPort: number;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const namespace = await createNamespace('many');
  const database = stack.use(await createDatabase());
  [grpcPort = 0] = await freePorts(1);
  const settings = { ROLLCALL_GRPC_PORT: String(grpcPort) };
  registry = stack.use(await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url, settings }));
  const limits = { ROLLCALL_LIMIT_PREMIUM: '1000000' };
  gateway = stack.use(await startGatewayProcess({ namespace, registry: registry.url, settings: limits }));
  token = await tokenOf(gateway, await createClient(namespace, { id: 'caller' }));
});

afterAll(() => stack.disposeAsync());

test('a name has 1,000 instances, by REST, stream and gRPC, and the gateway uses them all', async () => {
  // Which one was meant is in the path.
  const backend = stack.use(await startBackend((request, response) => response.end(request.url?.split('/')[1])));
  await using stream = await openEventStream(`${registry.url}/api/v1/services/watch?instances=true`);
  await stream.until('synced');
  const before = await residentMib(gateway);

  await timed('registered', () => registerAll(backend.url));
  expect(await timed('streamed', () => added(stream))).toHaveLength(SIZE);
  const { body } = await timed('GET', () => registry.call('GET', `/services/${NAME}/instances`));
  console.log(`${JSON.stringify(body).length} bytes`);
  expect(body).toMatchObject({ total: SIZE });
  using grpc = createGrpcClient(grpcPort);
  const { message } = await timed('gRPC', () => grpc.call('ListInstances', { serviceName: NAME }));
  expect(message?.['instances']).toHaveLength(SIZE);

  expect(await timed('called', callAll)).toHaveLength(SIZE);
  const after = await residentMib(gateway);
  console.log(`memory of the gateway: ${before.toFixed(0)} to ${after.toFixed(0)} MiB`);
  expect(after - before).toBeLessThan(MOST_MIB);
});

async function timed<T>(what: string, task: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  const result = await task();
  console.log(`${what}: ${(performance.now() - startedMs).toFixed(0)} ms`);
  return result;
}

async function registerAll(url: string): Promise<void> {
  const next = Array.from({ length: SIZE }, (_, index) => `i-${index}`).values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const instance_id of next) {
        const body = { service_name: NAME, instance_id, service_url: `${url}/${instance_id}` };
        const { status } = await registry.call('POST', '/services/register', body);
        if (status !== 200) throw new Error(`${instance_id} was answered ${status}`);
      }
    }),
  );
}

async function added(stream: EventStream): Promise<unknown[]> {
  const told = new Set<unknown>();
  while (told.size < SIZE) {
    const { type, data } = await stream.next(20_000);
    if (type === 'added') told.add(data['instance_id']);
  }
  return [...told];
}

/** @returns who has answered, after 20 requests for each at most: they are chosen by chance. */
async function callAll(): Promise<string[]> {
  const served = new Set<string>();
  const call = async (): Promise<void> => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${gateway.url}/api/v1/${NAME}/x`, { headers });
    served.add(answer.status === 200 ? await answer.text() : `status ${answer.status}`);
  };
  for (let requests = 0; served.size < SIZE && requests < 20 * SIZE; requests += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, call));
  }
  return [...served];
}

async function residentMib({ process: { pid } }: Replica): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
