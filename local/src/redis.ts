import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePorts } from './ports.ts';
import { logTail, type ManagedProcess, startProcess } from './processes.ts';
import type { RedisBinary } from './redis-binary.ts';
import { waitUntil } from './wait.ts';

export interface RedisOptions {
  /** For configuration, log and data. The caller removes it. */
  readonly directory: string;
  readonly binary: RedisBinary;
  /** By default a free port is used. */
  readonly port?: number;
  /** Keeps what was acknowledged when the server is killed; by default every start begins empty. */
  readonly appendOnly?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A running Redis on 127.0.0.1. */
export interface Redis extends AsyncDisposable {
  /** `redis://:password@127.0.0.1:port`; a number as its path names a database. */
  readonly url: string;
  readonly port: number;
  /** The process id of the server while it runs. */
  readonly pid: number | undefined;
  /** Rejects when the server ends by itself, killed from outside included. */
  readonly failed: Promise<never>;
  /** Ends the server with SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again with the same port and password. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Numbered from 0; an empty one costs next to nothing. */
export const DATABASES = 1024;

const READY_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 5_000;
const PROBE_TIMEOUT_MS = 2_000;

/** What the server says when it cannot have its port. */
const PORT_TAKEN = 'Failed listening on port';

/**
 * Starts a Redis with a random password. When another process binds the port first, it is tried
 * once more with another.
 *
 * @throws with the end of its log when it does not start.
 */
export async function startRedis(options: RedisOptions): Promise<Redis> {
  const { directory, port, signal } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const logFile = join(directory, 'redis.log');
  const password = randomBytes(24).toString('base64url');
  try {
    return await startServer({ ...options, password, logFile, port: port ?? (await onePort()) });
  } catch (err) {
    signal?.throwIfAborted();
    if (port !== undefined || !(await logTail(logFile)).includes(PORT_TAKEN)) throw err;
    return startServer({ ...options, password, logFile, port: await onePort() });
  }
}

async function onePort(): Promise<number> {
  const [port] = await freePorts(1);
  if (port === undefined) throw new Error('No free port');
  return port;
}

interface ServerOptions extends RedisOptions {
  readonly port: number;
  readonly password: string;
  readonly logFile: string;
}

async function startServer(options: ServerOptions): Promise<Redis> {
  const { binary, logFile, port, password, signal } = options;
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  let server: ManagedProcess | undefined;
  const configuration = await writeConfiguration(options);

  const stop = async (how: NodeJS.Signals): Promise<void> => {
    const stopping = server;
    server = undefined;
    await stopping?.stop({ signal: how, graceMs: STOP_GRACE_MS });
  };
  const start = async (): Promise<void> => {
    const started = await startProcess({
      name: 'redis',
      command: binary.file,
      args: [configuration],
      logFile,
      env: { PATH: process.env['PATH'], ...binary.env },
    });
    server = started;
    const wait = { timeoutMs: READY_TIMEOUT_MS, signal, failed: started.failed };
    try {
      await waitUntil('Redis answers PING', () => answersPing(port, password), wait);
    } catch (err) {
      await stop('SIGTERM');
      throw err;
    }
    started.failed.catch(failure.reject);
  };

  await start();
  return {
    url: `redis://:${password}@127.0.0.1:${port}`,
    port,
    get pid() {
      return server?.pid;
    },
    failed: failure.promise,
    kill: () => stop('SIGKILL'),
    start,
    stop: () => stop('SIGTERM'),
    [Symbol.asyncDispose]: () => stop('SIGTERM'),
  };
}

/**
 * The password is in a file that nobody else can read, as anybody can see the arguments of a
 * process.
 */
async function writeConfiguration({ directory, port, password, appendOnly = false }: ServerOptions): Promise<string> {
  const file = join(directory, 'redis.conf');
  const data = join(directory, 'data');
  await mkdir(data, { recursive: true });
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    'protected-mode yes',
    `requirepass ${password}`,
    `dir ${JSON.stringify(data)}`,
    `databases ${DATABASES}`,
    'daemonize no',
    // The list of processes goes on showing which configuration it runs.
    'set-proc-title no',
    'save ""',
    `appendonly ${appendOnly ? 'yes' : 'no'}`,
    // Written to the kernel before each answer: that survives the process, if not the machine.
    'appendfsync no',
  ];
  // The mode is that of a new file only.
  await rm(file, { force: true });
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return file;
}

/** Whether a server on that port accepts the password, as only ours does, and answers PING. */
async function answersPing(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: PROBE_TIMEOUT_MS });
    let answer = '';
    const finish = (result: boolean): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setEncoding('latin1');
    socket.on('connect', () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    socket.on('data', (chunk: string) => {
      answer += chunk;
      if (answer.startsWith('-') || answer.split('\r\n').length > 2) finish(answer === '+OK\r\n+PONG\r\n');
    });
    socket.on('timeout', () => finish(false));
    socket.on('error', () => finish(false));
    socket.on('close', () => finish(false));
  });
}
