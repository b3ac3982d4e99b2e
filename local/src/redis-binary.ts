import { readdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { fetchDebianPackage, hasDebianTools } from './debian-packages.ts';
import { findExecutable, isExecutable } from './executables.ts';
import { withLock } from './file-lock.ts';
import { runProgram } from './processes.ts';

/** An executable that is Redis; REDIS_SERVER may be Valkey, which is the same to its clients. */
export interface RedisBinary {
  readonly file: string;
  /** For instance `7.0.15`. */
  readonly version: string;
  /**
   * What its environment must hold: where its shared libraries are, when they are not the system's.
   */
  readonly env: Readonly<Record<string, string>>;
}

export interface FindRedisOptions {
  /** REDIS_SERVER: an executable that is used instead of any other. */
  readonly redisServer?: string | undefined;
  readonly cacheDirectory: string;
  /** Called with a line of progress. Silent when nothing has to be fetched. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

const OLDEST_MAJOR = 7;
const PROGRAM = 'redis-server';
const VERSION_TIMEOUT_MS = 30_000;

/**
 * Finds a Redis server, version 7 or newer: REDIS_SERVER, else on the PATH, else in the cache, else
 * fetches the distribution's package into the cache (on Debian and Ubuntu; nothing is installed).
 * Several processes may do so at the same time: one fetches, the others wait for it.
 *
 * @throws when REDIS_SERVER is none, and when there is none and none can be fetched; the message
 * says what to install.
 */
export async function findRedisBinary(options: FindRedisOptions): Promise<RedisBinary> {
  const { redisServer, cacheDirectory } = options;
  if (redisServer !== undefined && redisServer !== '') return requireBinary(redisServer);
  return (await findOnPath()) ?? (await findCached(cacheDirectory)) ?? (await fetchOnce(options));
}

async function requireBinary(file: string): Promise<RedisBinary> {
  if (!(await isExecutable(file))) throw new Error(`REDIS_SERVER is ${file}, which is not an executable file`);
  const binary = await inspect(resolve(file));
  if (binary !== undefined) return binary;
  throw new Error(`REDIS_SERVER is ${file}, which is not a Redis or Valkey server of version ${OLDEST_MAJOR} or newer`);
}

async function findOnPath(): Promise<RedisBinary | undefined> {
  const file = await findExecutable(PROGRAM);
  return file === undefined ? undefined : inspect(file);
}

/** Runs it to see whether it works here and is new enough; undefined when not. */
async function inspect(file: string, env: Readonly<Record<string, string>> = {}): Promise<RedisBinary | undefined> {
  try {
    const signal = AbortSignal.timeout(VERSION_TIMEOUT_MS);
    const output = await runProgram([file, '--version'], { env: { PATH: process.env['PATH'], ...env }, signal });
    const version = parseVersion(output);
    return version !== undefined && Number.parseInt(version, 10) >= OLDEST_MAJOR ? { file, version, env } : undefined;
  } catch {
    return undefined;
  }
}

/** The version in what `redis-server --version` or `valkey-server --version` prints. */
export function parseVersion(output: string): string | undefined {
  return /^(?:Redis|Valkey) server v=(\d+\.\d+\.\d+)/m.exec(output)?.[1];
}

/**
 * What the names of cached directories end with; a home directory may be shared by unlike machines.
 */
const PLATFORM_SUFFIX = `_${process.platform}-${process.arch}`;

async function findCached(cacheDirectory: string): Promise<RedisBinary | undefined> {
  const names = await readdir(cacheDirectory).catch(() => []);
  for (const name of names.filter((each) => !each.startsWith('.') && each.endsWith(PLATFORM_SUFFIX))) {
    const binary = await inspectUnpacked(join(cacheDirectory, name));
    if (binary !== undefined) return binary;
  }
  return undefined;
}

async function inspectUnpacked(directory: string): Promise<RedisBinary | undefined> {
  const libraries = (await readdir(directory, { recursive: true }))
    .filter((path) => /\.so(\.\d+)*$/.test(path))
    .map((path) => join(directory, dirname(path)));
  const env = { LD_LIBRARY_PATH: [...new Set(libraries)].join(':') };
  const file = join(directory, 'usr', 'bin', PROGRAM);
  return (await isExecutable(file)) ? inspect(file, env) : undefined;
}

async function fetchOnce(options: FindRedisOptions): Promise<RedisBinary> {
  const { cacheDirectory, log, signal } = options;
  let announced = false;
  const waiting = (heldBy: number): void => {
    if (!announced) log(`Waiting for process ${heldBy}, which fetches a Redis server ...`);
    announced = true;
  };
  const fetchUnlessThere = async () => (await findCached(cacheDirectory)) ?? (await fetchBinary(options));
  return withLock(cacheDirectory, { signal, waiting }, fetchUnlessThere);
}

async function fetchBinary({ cacheDirectory, log, signal }: FindRedisOptions): Promise<RedisBinary> {
  if (!(await hasDebianTools())) throw new Error(`There is no Redis server on the PATH. ${remedy()}`);
  log(
    `Fetching a Redis server with apt-get. First run only: it is unpacked in ${cacheDirectory}, nothing is installed`,
  );
  const temporary = join(cacheDirectory, `.fetch-${process.pid}`);
  const unpacked = join(temporary, 'unpacked');
  const workDirectory = join(temporary, 'apt');
  try {
    // The executable is in the tools, and the server's package links to it.
    const packages = ['redis-server', 'redis-tools'] as const;
    const { name, version } = await fetchDebianPackage({ packages, directory: unpacked, workDirectory, signal });
    const directory = join(cacheDirectory, `${name}_${version}${PLATFORM_SUFFIX}`);
    // One that is there already does not run here any more, or it would have been found.
    await rm(directory, { recursive: true, force: true });
    await rename(unpacked, directory);
    const binary = await inspectUnpacked(directory);
    if (binary !== undefined) return binary;
    await rm(directory, { recursive: true });
    throw new Error(`${name} ${version} is older than ${OLDEST_MAJOR} or does not run here`);
  } catch (cause) {
    signal?.throwIfAborted();
    const message = `There is no Redis server on the PATH, and none could be fetched. ${remedy()}`;
    throw new Error(`${message}\n${errorMessage(cause)}`, { cause });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

function remedy(): string {
  const install = process.platform === 'darwin' ? 'brew install redis' : 'apt-get install redis-server, or the like';
  return `Install Redis ${OLDEST_MAJOR} or newer (${install}), or set REDIS_SERVER to the path of a redis-server.`;
}
