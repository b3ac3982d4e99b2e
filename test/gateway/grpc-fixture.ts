import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import {
  type CallOptions,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  credentials,
  Metadata,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js';
import type { Caller } from '@rollcall/gateway/admission/caller.ts';
import type { Limits, Verdict } from '@rollcall/gateway/admission/limits.ts';
import type { GrpcLimits } from '@rollcall/gateway/doors/grpc/limits.ts';
import { createGrpcProxy } from '@rollcall/gateway/doors/grpc/proxy.ts';
import type { GrpcTarget } from '@rollcall/gateway/doors/grpc/targets.ts';
import { GatewayError } from '@rollcall/gateway/errors.ts';
import { placeOf } from '@rollcall/gateway/upstream/discovery/endpoint.ts';
import { endpointsBy } from '@rollcall/gateway/upstream/discovery/endpoints.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { startService } from '@rollcall/local/services.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { defaultBreakerPolicy } from '@rollcall/platform/outbound/breaker.ts';
import { createLookups, type Resolve } from '@rollcall/platform/outbound/lookups.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import { inject } from 'vitest';
import type { BackendStats } from './grpc-backend.ts';
import { methodDefinition } from './grpc-methods.ts';

/** A gRPC server as a process of its own. */
export interface Backend extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  /** Ends it with SIGKILL, at once. */
  kill(): Promise<void>;
}

export interface BackendOptions {
  /** Undefined: any free one. */
  readonly port?: number;
  readonly host?: string;
  /** How often it pings its callers. */
  readonly keepAliveMs?: number;
}

export async function startBackend(options: BackendOptions = {}): Promise<Backend> {
  const { host = '127.0.0.1', keepAliveMs = 60_000 } = options;
  const port = options.port ?? (await freePorts(1))[0] ?? 0;
  const started = await startService(
    {
      name: `grpc-backend-${randomBytes(4).toString('hex')}`,
      script: 'test/gateway/grpc-backend.ts',
      args: [String(port), host, String(keepAliveMs)],
    },
    { logDirectory: inject('temporaryDirectory'), env: { PATH: process.env['PATH'] } },
  );
  await waitUntil('the backend listens', () => takesConnections(port, host), {
    timeoutMs: 30_000,
    failed: started.failed,
  });
  return {
    port,
    pid: started.pid,
    async kill() {
      process.kill(started.pid, 'SIGKILL');
      await started.exited;
    },
    [Symbol.asyncDispose]: () => started.stop(),
  };
}

function takesConnections(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** A proxy in this process, and what tests may change about it while it runs. */
export interface TestProxy extends AsyncDisposable {
  readonly port: number;
  readonly metrics: ReturnType<typeof createMetrics>;
  /** Registrations with the capability grpc, by name. */
  readonly registered: Map<string, GrpcTarget>;
  /** Callers by their tokens. */
  readonly callers: Map<string, Caller>;
  allowance: Limits['check'];
  identity: (caller: Caller, service: string) => readonly string[];
  isKnown: boolean;
  stop(): Promise<void>;
}

export interface TestProxyOptions {
  readonly backendPort: number;
  readonly limits?: Partial<GrpcLimits>;
  /** Undefined: the system's. */
  readonly resolve?: Resolve;
  readonly drainMs?: number;
  readonly closingLimitMs?: number;
}

export const TOKEN = 'alice-token';

export function callerNamed(subject: string): Caller {
  return { subject, tier: 'standard', scopes: new Set(), expiresAtMs: Number.POSITIVE_INFINITY };
}

/**
 * A registration on this machine.
 *
 * @param addresses of its host name; by default there is none to choose.
 */
export function targetAt(service: string, port: number, addresses: readonly string[] = []): GrpcTarget {
  const host = addresses.length === 0 ? '127.0.0.1' : 'several.test';
  return targetOf(service, `http://${host}:${port}`, addresses);
}

/** As {@link targetAt}, at any origin. */
export function targetOf(service: string, origin: string, addresses: readonly string[] = []): GrpcTarget {
  const endpointsOf = endpointsBy({
    mayConnect: addressRules.any,
    resolve: async () =>
      (addresses.length === 0 ? ['127.0.0.1'] : addresses).map((address) => ({ address, family: 4 })),
    breakerPolicy: defaultBreakerPolicy,
    mostUnderWay: Number.POSITIVE_INFINITY,
    clock: systemClock,
  });
  return { service, endpoints: endpointsOf([placeOf(origin)]) };
}

export async function startProxy(options: TestProxyOptions): Promise<TestProxy> {
  const { backendPort, limits = {}, drainMs = 0, closingLimitMs = 5000 } = options;
  const metrics = createMetrics('gateway');
  const callers = new Map([[TOKEN, callerNamed('alice')]]);
  const registered = new Map<string, GrpcTarget>();
  registered.set('rollcall.test', targetAt('rollcall.test', backendPort));
  const state = {
    allowance: (): Verdict => ({ headers: { 'x-ratelimit-limit': '100' }, refusal: undefined }),
    identity: (caller: Caller, service: string): readonly string[] => [
      'x-rollcall-subject',
      caller.subject,
      'x-rollcall-service',
      service,
    ],
    isKnown: true,
  };
  const proxy = createGrpcProxy({
    host: '127.0.0.1',
    port: 0,
    authenticator: {
      authenticate(token) {
        const caller = callers.get(token);
        if (caller === undefined) throw new GatewayError('INVALID_TOKEN');
        return caller;
      },
      stillHolds: (token) => callers.has(token),
    },
    requestLimits: { check: (request) => test.allowance(request) },
    lookups: createLookups(options.resolve),
    targets: { find: (name) => registered.get(name), known: () => test.isKnown },
    identity: { headersFor: (caller, service) => test.identity(caller, service) },
    log: createLogger('gateway', 'silent'),
    metrics,
    clock: systemClock,
    drainMs,
    closingLimitMs,
    limits,
  });
  await proxy.start();
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= proxy.stop());
  const test: TestProxy = {
    ...state,
    port: proxy.port,
    metrics,
    registered,
    callers,
    stop,
    [Symbol.asyncDispose]: stop,
  };
  return test;
}

/** What the proxy says of itself: `rollcall_gateway_grpc_<name>`. */
export async function gaugeOf({ metrics }: Pick<TestProxy, 'metrics'>, name: string): Promise<number> {
  return Number(new RegExp(`^rollcall_gateway_grpc_${name}\\{.*\\} (\\d+)$`, 'm').exec(await metrics.metrics())?.[1]);
}

/** What a unary call was answered with. */
interface UnaryAnswer {
  readonly message: Buffer | undefined;
  readonly error: ServiceError | undefined;
  readonly head: Metadata | undefined;
  readonly status: StatusObject;
}

/** A real gRPC client with the methods of the tests' service. */
export interface EchoClient extends Disposable {
  readonly client: Client;
  unary(message: Buffer, metadata?: Record<string, string | Buffer>, options?: CallOptions): Promise<UnaryAnswer>;
  /** As {@link EchoClient.unary}, with the call to cancel. */
  startUnary(
    message: Buffer,
    metadata?: Record<string, string>,
  ): { call: ClientUnaryCall; answer: Promise<UnaryAnswer> };
  serverStream(request: object, metadata?: Record<string, string>, options?: CallOptions): ClientReadableStream<Buffer>;
  clientStream(
    callback: (error: ServiceError | null, answer?: Buffer) => void,
    metadata?: Record<string, string>,
  ): ClientWritableStream<Buffer>;
  bidi(metadata?: Record<string, string>, options?: CallOptions): ClientDuplexStream<Buffer, Buffer>;
  stats(): Promise<BackendStats>;
}

export interface EchoClientOptions {
  /** Undefined: none. */
  readonly token?: string | undefined;
  readonly channel?: ChannelOptions;
  readonly host?: string;
}

const UNLIMITED = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

export function createEchoClient(port: number, options: EchoClientOptions = {}): EchoClient {
  const { token, channel, host = '127.0.0.1' } = options;
  const client = new Client(`${host}:${port}`, credentials.createInsecure(), {
    ...UNLIMITED,
    // Channels are shared by address and options else.
    'grpc.use_local_subchannel_pool': 1,
    ...channel,
  });

  function metadataOf(entries: Record<string, string | Buffer> = {}): Metadata {
    const metadata = new Metadata();
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
    for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
    return metadata;
  }

  function start(
    method: 'Unary' | 'Stats',
    message: Buffer,
    [metadata, options = {}]: [Metadata, (CallOptions | undefined)?],
  ) {
    const { promise: answer, resolve } = Promise.withResolvers<UnaryAnswer>();
    const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
    let head: Metadata | undefined;
    let status: StatusObject | undefined;
    let outcome: Pick<UnaryAnswer, 'message' | 'error'> | undefined;
    const settle = () => {
      if (status !== undefined && outcome !== undefined) resolve({ ...outcome, head, status });
    };
    const call = client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      message,
      metadata,
      options,
      (error, answered) => {
        outcome = { message: answered, error: error ?? undefined };
        settle();
      },
    );
    call.on('metadata', (initial: Metadata) => {
      head = initial;
    });
    call.on('status', (final: StatusObject) => {
      status = final;
      settle();
    });
    return { call, answer };
  }

  return {
    client,
    unary: (message, metadata, options) => start('Unary', message, [metadataOf(metadata), options]).answer,
    startUnary: (message, metadata) => start('Unary', message, [metadataOf(metadata)]),
    serverStream(request, metadata, options = {}) {
      const { path, requestSerialize, responseDeserialize } = methodDefinition('ServerStream');
      const message = Buffer.from(JSON.stringify(request));
      return client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        message,
        metadataOf(metadata),
        options,
      );
    },
    clientStream(callback, metadata) {
      const { path, requestSerialize, responseDeserialize } = methodDefinition('ClientStream');
      return client.makeClientStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        metadataOf(metadata),
        callback,
      );
    },
    bidi(metadata, options = {}) {
      const { path, requestSerialize, responseDeserialize } = methodDefinition('Bidi');
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadataOf(metadata), options);
    },
    async stats() {
      const { message, error } = await start('Stats', Buffer.alloc(0), [metadataOf()]).answer;
      if (message === undefined) throw new Error('No statistics', { cause: error });
      return JSON.parse(message.toString()) as BackendStats;
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** How a streaming call ends. */
export function statusOf(call: {
  on(event: 'status', listener: (status: StatusObject) => void): unknown;
}): Promise<StatusObject> {
  return new Promise((resolve) => {
    call.on('status', resolve);
  });
}
