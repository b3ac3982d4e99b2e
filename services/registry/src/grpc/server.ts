import { Server, ServerCredentials } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { serviceDefinition } from '@rollcall/platform/grpc/protocols.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import { type CallsDeps, createCalls } from './calls.ts';
import { createHealth } from './health.ts';
import { loadProtocol, REGISTRY } from './protocol.ts';
import { type RegistryBackend, registryService } from './registry-service.ts';
import { createWatchStreams } from './watch.ts';

export interface GrpcServerDeps extends CallsDeps {
  /** Undefined: any address. */
  readonly host: string | undefined;
  /** 0: any free one. */
  readonly port: number;
  readonly backend: RegistryBackend;
}

/** The registry's gRPC door, as a part of the process. */
export interface GrpcServer extends Actor {
  /** Whether the standard health service says SERVING. */
  setServing(serving: boolean): void;
  /** Ends the open watches, so that the server can close. */
  closeStreams(): void;
}

const HEALTH = 'grpc.health.v1.Health';
/** Of calls under way, when the server stops. */
const CLOSING_LIMIT_MS = 3000;

const OPTIONS = {
  // As the HTTP API.
  'grpc.max_receive_message_length': 256 * 1024,
  // A page of a list.
  'grpc.max_send_message_length': 32 * 1024 * 1024,
  'grpc.max_concurrent_streams': 1000,
  // Callers that are gone are noticed. No maximum age with that: grpc-js closes an old connection,
  // treats the next ping over it as failed, and drops its streams. The gateway goes over to
  // replicas that came later by itself.
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 20_000,
  'grpc.max_connection_idle_ms': 300_000,
};

/** Serves rollcall.registry.v1, grpc.health.v1 and reflection; the last two to anyone. */
export function createGrpcServer(deps: GrpcServerDeps): GrpcServer {
  const { log, backend } = deps;
  const protocol = loadProtocol();
  const calls = createCalls(deps);
  const watches = createWatchStreams({ ...backend, calls });
  const health = createHealth([REGISTRY]);
  const server = new Server(OPTIONS);
  server.addService(serviceDefinition(protocol, REGISTRY), registryService(backend, calls, watches));
  server.addService(serviceDefinition(protocol, HEALTH), health.implementation);
  new ReflectionService(protocol).addToServer(server);

  function closeStreams(): void {
    watches.closeAll();
    health.closeAll();
  }

  return {
    name: 'gRPC server',
    async start() {
      const host = deps.host ?? (await anyAddress());
      const address = `${host.includes(':') ? `[${host}]` : host}:${deps.port}`;
      const port = await new Promise<number>((resolve, reject) => {
        server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => {
          if (error === null) resolve(bound);
          else reject(error);
        });
      });
      log.info({ host, port }, 'registry listens for gRPC');
    },
    async stop() {
      closeStreams();
      const limit = setTimeout(() => server.forceShutdown(), CLOSING_LIMIT_MS);
      await new Promise<void>((resolve) => {
        server.tryShutdown(() => resolve());
      });
      clearTimeout(limit);
    },
    setServing: (serving) => health.set(serving ? 'SERVING' : 'NOT_SERVING'),
    closeStreams,
  };
}
