import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '@rollcall/local/ports.ts';
import { logTail, type ManagedProcess } from '@rollcall/local/processes.ts';
import { startService as startServiceProcess, waitUntilReady } from '@rollcall/local/services.ts';
import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import { type ProcessDefinition, runProcess } from '@rollcall/platform/process/main.ts';
import type { ProcessConfig } from '@rollcall/platform/process/settings.ts';

/**
 * Node's own default. Tests start hundreds of processes: without it each compiles everything again,
 * which is half of the work of its start. It outlives the run and is shared by all tiers, because a
 * process that is killed leaves nothing in it.
 */
export const COMPILE_CACHE = join(tmpdir(), 'node-compile-cache');

export interface ReplicaOptions {
  readonly logDirectory: string;
  /**
   * The variables by which it finds the API server: those of a pod, or `KUBECONFIG`, for which it
   * loads much more.
   */
  readonly access: Readonly<Record<string, string>>;
  readonly namespace: string;
  /** API and admin port; free ones by default. */
  readonly ports?: readonly [number, number];
  /** More settings, by the names of their variables. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Of a service in this process; the system's by default. */
  readonly clock?: Clock;
}

/** One replica of a service, wherever it runs. */
export interface RunningService extends AsyncDisposable {
  /** `http://127.0.0.1:port`; of an operator, which has no API, nothing listens there. */
  readonly url: string;
  readonly adminUrl: string;
  readonly logFile: string;
  /** Calls the API. @param path relative to `/api/v1`. */
  call(method: string, path: string, body?: unknown): Promise<Answer>;
}

/** One replica of the operator or of a service, as a process of its own. */
export interface Replica extends RunningService {
  readonly process: ManagedProcess;
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON, or undefined when there is none. */
  readonly body: Record<string, unknown> | undefined;
}

/** What a replica gets for its environment, besides what is said for it. */
function environmentFor(options: ReplicaOptions, [port, adminPort]: readonly [number, number]): Record<string, string> {
  return {
    ...options.access,
    ROLLCALL_NAMESPACE: options.namespace,
    ROLLCALL_HOST: '127.0.0.1',
    // Services of tests are on this machine.
    ROLLCALL_SERVICE_ADDRESSES: 'any',
    ROLLCALL_PORT: String(port),
    // Any that is free.
    ROLLCALL_GRPC_PORT: '0',
    ROLLCALL_ADMIN_PORT: String(adminPort),
    ...options.settings,
  };
}

async function twoPorts(): Promise<readonly [number, number]> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  return [port, adminPort];
}

/**
 * Runs a service in this process, and waits until it is ready. It does what it does in its own, but
 * starts in a tenth of the time; it can be neither killed nor frozen.
 */
export async function startService<Config extends ProcessConfig>(
  definition: ProcessDefinition<Config>,
  options: ReplicaOptions,
): Promise<RunningService> {
  const ports = options.ports ?? (await twoPorts());
  const name = `${definition.name}-${randomBytes(4).toString('hex')}`;
  const logFile = join(options.logDirectory, `${name}.log`);
  const { promise: stopRequested, resolve: stop } = Promise.withResolvers<string>();
  let stopping = false;
  const ended = runProcess(definition, {
    environment: environmentFor(options, ports),
    clock: options.clock ?? systemClock,
    stopRequested,
    logTo: { write: (line) => appendFileSync(logFile, line) },
  });
  const failed = ended.then(async (code): Promise<never> => {
    if (stopping) return new Promise(() => undefined);
    throw new Error(`${name} ended with code ${code}. The end of ${logFile}:\n${await logTail(logFile)}`);
  });
  // Whoever waits for it sees the rejection.
  failed.catch(() => undefined);
  await waitUntilReady({ name, failed }, ports[1]);
  const url = `http://127.0.0.1:${ports[0]}`;
  return {
    url,
    adminUrl: `http://127.0.0.1:${ports[1]}`,
    logFile,
    call: (method, path, body) => callApi(url, { method, path, body }),
    async [Symbol.asyncDispose]() {
      if (stopping) return;
      stopping = true;
      stop('the test stops it');
      await ended;
    },
  };
}

/**
 * Starts the real process without waiting for it.
 *
 * @param script its main file, from the root of the repository.
 */
export async function startReplica(script: string, options: ReplicaOptions): Promise<Replica> {
  const ports = options.ports ?? (await twoPorts());
  const started = await startServiceProcess(
    {
      name: `${script.split('/').at(-3)}-${randomBytes(4).toString('hex')}`,
      script,
      env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...environmentFor(options, ports) },
    },
    { logDirectory: options.logDirectory, env: { PATH: process.env['PATH'] } },
  );
  const url = `http://127.0.0.1:${ports[0]}`;
  return {
    url,
    adminUrl: `http://127.0.0.1:${ports[1]}`,
    logFile: started.logFile,
    process: started,
    async kill() {
      process.kill(started.pid, 'SIGKILL');
      await started.exited;
    },
    call: (method, path, body) => callApi(url, { method, path, body }),
    [Symbol.asyncDispose]: () => started.stop(),
  };
}

/** As {@link startReplica}, and waits until it is ready. */
export async function startReadyReplica(script: string, options: ReplicaOptions): Promise<Replica> {
  const replica = await startReplica(script, options);
  await waitUntilReady(replica.process, Number(new URL(replica.adminUrl).port));
  return replica;
}

export interface ApiCall {
  readonly method: string;
  /** Relative to `/api/v1`. */
  readonly path: string;
  readonly body?: unknown;
  /** Shown to a server that wants one. */
  readonly token?: string;
}

/** Calls the API at a URL. */
export async function callApi(url: string, { method, path, body, token }: ApiCall): Promise<Answer> {
  const response = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : undefined };
}
