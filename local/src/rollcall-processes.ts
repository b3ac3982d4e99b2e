import { freePorts, preferredPort } from './ports.ts';
import type { ServiceOptions } from './services.ts';

/** A process of Rollcall. */
export interface PlannedProcess extends ServiceOptions {
  readonly adminPort: number;
}

export interface Backends {
  /** The registry's in PostgreSQL. */
  readonly databaseUrl: string;
  readonly redisUrl: string;
}

export interface ProcessPlan {
  readonly processes: readonly PlannedProcess[];
  /** Base URL of the registry, without `/api/v1`. */
  readonly registry: string;
  /** Base URL of the gateway, without `/api`. */
  readonly gateway: string;
  /** `host:port` of the gateway for gRPC. */
  readonly gatewayGrpc: string;
}

/**
 * Chooses ports on 127.0.0.1 for all processes.
 *
 * @param log called with a port that is used.
 */
export async function planProcesses(log: (line: string) => void, backends: Backends): Promise<ProcessPlan> {
  // All at once, so that each is another one.
  const [operatorAdmin = 0, registryAdmin = 0, gatewayAdmin = 0, registryGrpcPort = 0] = await freePorts(4);
  const registryPort = await portFor(3001, 'the registry', log);
  const gatewayPort = await portFor(3000, 'the gateway', log);
  const gatewayGrpcPort = await portFor(50_051, 'the gateway, for gRPC,', log);
  const registry = `http://127.0.0.1:${registryPort}`;
  const processes = [
    { name: 'operator', script: 'operator/src/main.ts', adminPort: operatorAdmin },
    {
      name: 'registry',
      script: 'services/registry/src/main.ts',
      adminPort: registryAdmin,
      env: {
        ROLLCALL_PORT: String(registryPort),
        ROLLCALL_GRPC_PORT: String(registryGrpcPort),
        ROLLCALL_DATABASE_URL: backends.databaseUrl,
      },
    },
    {
      name: 'gateway',
      script: 'services/gateway/src/main.ts',
      adminPort: gatewayAdmin,
      env: {
        ROLLCALL_PORT: String(gatewayPort),
        ROLLCALL_GRPC_PORT: String(gatewayGrpcPort),
        ROLLCALL_REDIS_URL: backends.redisUrl,
        ROLLCALL_REGISTRY_URLS: registry,
        ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${registryGrpcPort}`,
      },
    },
  ];
  const gateway = `http://127.0.0.1:${gatewayPort}`;
  return { processes, registry, gateway, gatewayGrpc: `127.0.0.1:${gatewayGrpcPort}` };
}

async function portFor(preferred: number, whom: string, log: (line: string) => void): Promise<number> {
  const port = await preferredPort(preferred);
  if (port !== preferred) log(`Port ${preferred} is in use: ${whom} listens on ${port}`);
  return port;
}
