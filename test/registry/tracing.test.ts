import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OtlpReceiver, startOtlpReceiver } from '../gateway/otlp-receiver.ts';
import { readCluster, writeKubeconfig } from '../kube/fixtures.ts';
import { startTcpRelay, type TcpRelay } from '../kube/tcp-relay.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import { createGrpcClient } from './grpc-client.ts';

const SPAN = '00f067aa0ba902b7';
const METHOD = 'rollcall.registry.v1.Registry';

const stack = new AsyncDisposableStack();
let collector: OtlpReceiver;
let relay: TcpRelay;
let port: number;

beforeAll(async () => {
  const namespace = await createNamespace('registry-tracing');
  const database = stack.use(await createDatabase());
  collector = stack.use(await startOtlpReceiver());
  const parts = await readCluster(namespace.kubeconfigPath);
  relay = stack.use(await startTcpRelay(parts.port));
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  [port = 0] = await freePorts(1);
  stack.use(
    await startRegistryProcess({
      namespace: namespace.name,
      databaseUrl: database.url,
      access: { KUBECONFIG: await writeKubeconfig({ cluster, user: parts.user }) },
      settings: {
        ROLLCALL_GRPC_PORT: String(port),
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '50',
      },
    }),
  );
});

afterAll(() => stack.disposeAsync());

/** Calls as a part of the trace. @returns the status, and the span that came of it. */
async function traced(traceId: string, method: string, request: object) {
  using client = createGrpcClient(port, undefined, { traceparent: `00-${traceId}-${SPAN}-01`, tracestate: 'a=1,b=2' });
  const { code } = await client.call(method, request);
  const [span] = await collector.trace(traceId, (spans) => spans.length > 0);
  return { code, span };
}

test('a call of gRPC is a span in the trace of its caller', async () => {
  const shop = { serviceName: 'shop', serviceUrl: 'http://shop', capabilities: [] };
  const { code, span } = await traced('a'.repeat(32), 'Register', shop);
  expect(code).toBe(status.OK);
  expect(span).toMatchObject({
    kind: 'server',
    name: `${METHOD}/Register`,
    parentId: SPAN,
    traceState: 'a=1,b=2',
    failed: false,
    attributes: {
      'rpc.system.name': 'grpc',
      'rpc.method': `${METHOD}/Register`,
      'rpc.response.status_code': 'OK',
      'client.address': '127.0.0.1',
      'user_agent.original': expect.stringContaining('grpc-node-js'),
    },
    resource: { 'service.name': 'rollcall-registry' },
  });
});

test('what is the fault of its caller has not failed', async () => {
  const { code, span } = await traced('b'.repeat(32), 'Heartbeat', { serviceName: 'nobody' });
  expect(code).toBe(status.NOT_FOUND);
  expect(span).toMatchObject({ failed: false, attributes: { 'rpc.response.status_code': 'NOT_FOUND' } });
});

test('neither what monitoring asks for all the time nor what ends with its reader is one', async () => {
  const traceId = 'c'.repeat(32);
  using client = createGrpcClient(port, undefined, { traceparent: `00-${traceId}-${SPAN}-01` });
  expect((await client.call('grpc.health.v1.Health/Check', { service: '' })).code).toBe(status.OK);
  {
    using watch = client.open('Watch', {});
    await watch.next();
  }
  expect((await client.call('List', {})).code).toBe(status.OK);
  const spans = await collector.trace(traceId, (found) => found.length > 0);
  expect(spans.map(({ name }) => name)).toEqual([`${METHOD}/List`]);
});

test('that the API server is unavailable is a failure', async () => {
  await relay[Symbol.asyncDispose]();
  const { code, span } = await traced('d'.repeat(32), 'Get', { serviceName: 'unknown' });
  expect(code).toBe(status.UNAVAILABLE);
  expect(span).toMatchObject({
    failed: true,
    attributes: { 'rpc.response.status_code': 'UNAVAILABLE', 'error.type': 'UNAVAILABLE' },
  });
});
