import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '@rollcall/local/ports.ts';
import type { ManagedProcess } from '@rollcall/local/processes.ts';
import { startService, waitUntilReady } from '@rollcall/local/services.ts';

/**
 * Node's own default. Tests start hundreds of processes: without it each compiles everything again,
 * which is half of the work of its start. It outlives the run and is shared by all tiers, because a
 * process that is killed leaves nothing in it.
 */
export const COMPILE_CACHE = join(tmpdir(), 'node-compile-cache');

export interface ReplicaOptions {
  readonly logDirectory: string;
  readonly kubeconfig: string;
  readonly namespace: string;
  /** API and admin port; free ones by default. */
  readonly ports?: readonly [number, number];
  /** More settings, by the names of their variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** One replica of the operator or of a service, as a process of its own. */
export interface Replica extends AsyncDisposable {
  /** `http://127.0.0.1:port`; of an operator, which has no API, nothing listens there. */
  readonly url: string;
  readonly adminUrl: string;
  readonly process: ManagedProcess;
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
  /** Calls the API. @param path relative to `/api/v1`. */
  call(method: string, path: string, body?: unknown): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON, or undefined when there is none. */
  readonly body: Record<string, unknown> | undefined;
}

/**
 * Starts the real process without waiting for it.
 *
 * @param script its main file, from the root of the repository.
 */
export async function startReplica(script: string, options: ReplicaOptions): Promise<Replica> {
  const [port = 0, adminPort = 0] = options.ports ?? (await freePorts(2));
  const started = await startService(
    {
      name: `${script.split('/').at(-3)}-${randomBytes(4).toString('hex')}`,
      script,
      env: {
        KUBECONFIG: options.kubeconfig,
        ROLLCALL_NAMESPACE: options.namespace,
        ROLLCALL_HOST: '127.0.0.1',
        // Services of tests are on this machine.
        ROLLCALL_SERVICE_ADDRESSES: 'any',
        ROLLCALL_PORT: String(port),
        // Any that is free.
        ROLLCALL_GRPC_PORT: '0',
        ROLLCALL_ADMIN_PORT: String(adminPort),
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        ...options.settings,
      },
    },
    { logDirectory: options.logDirectory, env: { PATH: process.env['PATH'] } },
  );
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    adminUrl: `http://127.0.0.1:${adminPort}`,
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
