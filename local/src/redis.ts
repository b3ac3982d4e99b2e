import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { freePort } from './ports.ts';
import type { RedisBinary } from './redis-binary.ts';
import { type Restartable, startRestartable } from './restartable.ts';

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

/** A running Redis on 127.0.0.1; it is started again with the same port and password. */
export interface Redis extends Restartable {
  /** `redis://:password@127.0.0.1:port`; a number as its path names a database. */
  readonly url: string;
  readonly port: number;
}

/** Numbered from 0; an empty one costs next to nothing. */
export const DATABASES = 1024;

const PROBE_TIMEOUT_MS = 2_000;

/**
 * Starts a Redis with a random password.
 *
 * @throws with the end of its log when it does not start.
 */
export async function startRedis(options: RedisOptions): Promise<Redis> {
  const { directory, binary, signal, port = await freePort() } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const password = randomBytes(24).toString('base64url');
  const server = await startRestartable({
    name: 'redis',
    command: binary.file,
    args: [await writeConfiguration(options, port, password)],
    logFile: join(directory, 'redis.log'),
    env: { PATH: process.env['PATH'], ...binary.env },
    isReady: () => answersPing(port, password),
    stopSignal: 'SIGTERM',
    signal,
  });
  return Object.assign(server, { url: `redis://:${password}@127.0.0.1:${port}`, port });
}

/**
 * The password is in a file that nobody else can read, as anybody can see the arguments of a
 * process.
 */
async function writeConfiguration(options: RedisOptions, port: number, password: string): Promise<string> {
  const { directory, appendOnly = false } = options;
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
  const socket = connect({ port, host: '127.0.0.1', timeout: PROBE_TIMEOUT_MS });
  socket.on('timeout', () => socket.destroy());
  // It ends the connection at QUIT.
  socket.write(`AUTH ${password}\r\nPING\r\nQUIT\r\n`);
  const answer = await text(socket).catch(() => '');
  return answer.startsWith('+OK\r\n+PONG\r\n');
}
