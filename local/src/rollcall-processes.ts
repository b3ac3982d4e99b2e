import { freePorts, preferredPort } from './ports.ts';
import { sharedArenas, smallHeap } from './runtime.ts';
import type { ServiceOptions } from './services.ts';
import { type PlannedSimulators, planSimulators } from './simulators.ts';

/** A process of Rollcall. */
export interface PlannedProcess extends ServiceOptions {
  readonly adminPort: number;
}

export interface Backends {
  /** Of each service in PostgreSQL. */
  readonly databaseUrls: {
    readonly registry: string;
    readonly communication: string;
    readonly payment: string;
    readonly federation: string;
  };
  readonly redisUrl: string;
  /** Path of the keys of communication and payment. */
  readonly vaultKeysFile: string;
  /** Path of the file of providers of messages. */
  readonly messageProvidersFile: string;
  /** Path of the file of providers of payments. */
  readonly paymentProvidersFile: string;
  /** Path of who issues invoices. */
  readonly sellersFile: string;
  /** Path of the secret of payment's client at the gateway. */
  readonly paymentClientSecretFile: string;
  /** Path of the secret of federation's client there. */
  readonly federationClientSecretFile: string;
}

export interface ProcessPlan {
  readonly processes: readonly PlannedProcess[];
  /** Base URL of the registry, without `/api/v1`. */
  readonly registry: string;
  /** Base URL of the gateway, without `/api`. */
  readonly gateway: string;
  /** `host:port` of the gateway for gRPC. */
  readonly gatewayGrpc: string;
  /** Base URLs of the services, without `/api/v1`. */
  readonly communication: string;
  readonly payment: string;
  /** Base URL of federation, without `/api`. */
  readonly federation: string;
  readonly simulators: PlannedSimulators;
}

/**
 * Chooses ports on 127.0.0.1 for all processes.
 *
 * @param log called with a port that is used.
 */
export async function planProcesses(log: (line: string) => void, backends: Backends): Promise<ProcessPlan> {
  // All at once, so that each is another one.
  const [registryGrpcPort = 0, ...adminPorts] = await freePorts(7);
  const [operatorAdmin = 0, registryAdmin = 0, gatewayAdmin = 0, ...serviceAdmins] = adminPorts;
  const [communicationAdmin = 0, paymentAdmin = 0, federationAdmin = 0] = serviceAdmins;
  const registryPort = await portFor(3001, 'the registry', log);
  const gatewayPort = await portFor(3000, 'the gateway', log);
  const gatewayGrpcPort = await portFor(50_051, 'the gateway, for gRPC,', log);
  const federationPort = await portFor(3002, 'federation', log);
  const communicationPort = await portFor(3003, 'communication', log);
  const paymentPort = await portFor(3004, 'payment', log);
  const [registry, gateway] = [baseUrl(registryPort), baseUrl(gatewayPort)];
  const { databaseUrls, redisUrl } = backends;
  const processes = [
    { name: 'operator', script: 'operator/src/main.ts', adminPort: operatorAdmin },
    {
      name: 'registry',
      script: 'services/registry/src/main.ts',
      adminPort: registryAdmin,
      env: {
        ROLLCALL_PORT: String(registryPort),
        ROLLCALL_GRPC_PORT: String(registryGrpcPort),
        ROLLCALL_DATABASE_URL: databaseUrls.registry,
      },
    },
    {
      name: 'gateway',
      script: 'services/gateway/src/main.ts',
      adminPort: gatewayAdmin,
      env: {
        ROLLCALL_PORT: String(gatewayPort),
        ROLLCALL_GRPC_PORT: String(gatewayGrpcPort),
        ROLLCALL_REDIS_URL: redisUrl,
        ROLLCALL_REGISTRY_URLS: registry,
        ROLLCALL_REGISTRY_GRPC_URL: baseUrl(registryGrpcPort),
      },
    },
    {
      name: 'communication',
      script: 'services/communication/src/main.ts',
      adminPort: communicationAdmin,
      env: {
        ...smallHeap,
        ...serviceEnvironment(communicationPort, databaseUrls.communication),
        ROLLCALL_REDIS_URL: redisUrl,
        ROLLCALL_PROVIDERS_FILE: backends.messageProvidersFile,
      },
    },
    {
      name: 'payment',
      script: 'services/payment/src/main.ts',
      adminPort: paymentAdmin,
      env: {
        ...smallHeap,
        ...serviceEnvironment(paymentPort, databaseUrls.payment),
        ROLLCALL_PROVIDERS_FILE: backends.paymentProvidersFile,
        ROLLCALL_SELLERS_FILE: backends.sellersFile,
        ROLLCALL_CLIENT_ID: 'payment',
        ROLLCALL_CLIENT_SECRET_FILE: backends.paymentClientSecretFile,
        ROLLCALL_MODE: 'trial',
      },
    },
    {
      name: 'federation',
      script: 'services/federation/src/main.ts',
      adminPort: federationAdmin,
      env: {
        ...sharedArenas,
        ...registeredEnvironment(federationPort, databaseUrls.federation),
        ROLLCALL_CLIENT_ID: 'federation',
        ROLLCALL_CLIENT_SECRET_FILE: backends.federationClientSecretFile,
      },
    },
  ];
  const [communication, payment] = [baseUrl(communicationPort), baseUrl(paymentPort)];
  const federation = baseUrl(federationPort);
  const simulators = await planSimulators(gateway);
  return {
    processes,
    registry,
    gateway,
    gatewayGrpc: `127.0.0.1:${gatewayGrpcPort}`,
    communication,
    payment,
    federation,
    simulators,
  };

  function serviceEnvironment(port: number, databaseUrl: string): Record<string, string> {
    return {
      ...registeredEnvironment(port, databaseUrl),
      ROLLCALL_VAULT_KEYS_FILE: backends.vaultKeysFile,
      ROLLCALL_PUBLIC_URL: gateway,
    };
  }

  function registeredEnvironment(port: number, databaseUrl: string): Record<string, string> {
    return {
      ROLLCALL_PORT: String(port),
      ROLLCALL_DATABASE_URL: databaseUrl,
      ROLLCALL_GATEWAY_KEYS_URL: `${gateway}/.well-known/jwks.json`,
      ROLLCALL_REGISTRY_URLS: registry,
      ROLLCALL_SERVICE_URL: baseUrl(port),
    };
  }
}

function baseUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}

async function portFor(preferred: number, whom: string, log: (line: string) => void): Promise<number> {
  const port = await preferredPort(preferred);
  if (port !== preferred) log(`Port ${preferred} is in use: ${whom} listens on ${port}`);
  return port;
}
