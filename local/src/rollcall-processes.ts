import { freePorts, preferredPort } from './ports.ts';
import type { ServiceOptions } from './services.ts';

/** A process of Rollcall as `npm start` runs it. */
interface ProcessRow {
  readonly name: string;
  /** Path of its main file, from the root of the repository. */
  readonly script: string;
  /** Where its API listens, or near it when that port is used. Absent: it has none. */
  readonly port?: number;
  /** The same for gRPC; `any`: nobody but the other processes needs to know it. */
  readonly grpcPort?: number | 'any';
  /** What it is given: a role in PostgreSQL, Redis, or where the registry is. */
  readonly needs: readonly ('database' | 'redis' | 'registry')[];
}

const PROCESSES = [
  { name: 'operator', script: 'operator/src/main.ts', needs: [] },
  { name: 'registry', script: 'services/registry/src/main.ts', port: 3001, grpcPort: 'any', needs: ['database'] },
  {
    name: 'gateway',
    script: 'services/gateway/src/main.ts',
    port: 3000,
    grpcPort: 50_051,
    needs: ['redis', 'registry'],
  },
] as const satisfies readonly ProcessRow[];

type ProcessName = (typeof PROCESSES)[number]['name'];

/** A process with its ports, all on 127.0.0.1. */
export interface PlacedProcess extends Omit<ProcessRow, 'name' | 'port' | 'grpcPort'> {
  readonly name: ProcessName;
  readonly adminPort: number;
  readonly port: number | undefined;
  readonly grpcPort: number | undefined;
}

/** Chooses ports for all processes. @param log called with a port that is used. */
export async function placeProcesses(log: (line: string) => void): Promise<PlacedProcess[]> {
  const rows: readonly (ProcessRow & { readonly name: ProcessName })[] = PROCESSES;
  // All at once, so that each is another one.
  const free = await freePorts(2 * rows.length);
  const placed: PlacedProcess[] = [];
  for (const [index, row] of rows.entries()) {
    const { name, port, grpcPort } = row;
    placed.push({
      ...row,
      adminPort: free[2 * index] ?? 0,
      port: port === undefined ? undefined : await portFor(`the ${name}`, port, log),
      grpcPort:
        typeof grpcPort === 'number'
          ? await portFor(`the ${name}, for gRPC,`, grpcPort, log)
          : grpcPort && free[2 * index + 1],
    });
  }
  return placed;
}

async function portFor(whom: string, preferred: number, log: (line: string) => void): Promise<number> {
  const port = await preferredPort(preferred);
  if (port !== preferred) log(`Port ${preferred} is taken: ${whom} listens on ${port}`);
  return port;
}

/** @throws when there is no such process, or it has no API. */
export function portOf(
  placed: readonly PlacedProcess[],
  name: ProcessName,
  kind: 'port' | 'grpcPort' = 'port',
): number {
  const port = placed.find((process) => process.name === name)?.[kind];
  if (port === undefined) throw new Error(`The ${name} has no ${kind}`);
  return port;
}

export interface Backends {
  readonly redisUrl: string;
  /** Makes the role of a process in PostgreSQL. @returns its URL. */
  readonly databaseUrl: (process: string) => Promise<string>;
}

/** The process with its whole environment. */
export async function serviceOf(
  process: PlacedProcess,
  placed: readonly PlacedProcess[],
  { redisUrl, databaseUrl }: Backends,
): Promise<ServiceOptions> {
  const { name, script, needs, adminPort, port, grpcPort } = process;
  return {
    name,
    script,
    env: {
      ROLLCALL_ADMIN_PORT: String(adminPort),
      ...(port === undefined ? {} : { ROLLCALL_PORT: String(port) }),
      ...(grpcPort === undefined ? {} : { ROLLCALL_GRPC_PORT: String(grpcPort) }),
      ...(needs.includes('database') ? { ROLLCALL_DATABASE_URL: await databaseUrl(name) } : {}),
      ...(needs.includes('redis') ? { ROLLCALL_REDIS_URL: redisUrl } : {}),
      ...(needs.includes('registry')
        ? {
            ROLLCALL_REGISTRY_URLS: `http://127.0.0.1:${portOf(placed, 'registry')}`,
            ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${portOf(placed, 'registry', 'grpcPort')}`,
          }
        : {}),
    },
  };
}
