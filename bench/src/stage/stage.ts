import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '@rollcall/local/control-plane.ts';
import type { KubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { startPostgres } from '@rollcall/local/postgres.ts';
import type { ManagedProcess } from '@rollcall/local/processes.ts';
import { sharedArenas, smallHeap } from '@rollcall/local/runtime.ts';
import { type ServiceContext, startService, waitUntilReady } from '@rollcall/local/services.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { type SystemBinary, startHaproxy } from './haproxy.ts';
import { createImageSources } from './image-sources.ts';
import { type Metrics, parseMetrics, sumOf } from './metrics.ts';

/** A process under measurement, or a peer of one. */
export interface Subject {
  readonly port: number;
  readonly process: ManagedProcess;
  /** From the start of the process until it was ready. */
  readonly readyAfterMs: number;
  /** CPU time it has used, user and system. */
  cpuMs(): Promise<number>;
  stop(): Promise<void>;
}

/** One of Rollcall's own processes. */
export interface RollcallSubject extends Subject {
  metrics(): Promise<Metrics>;
  rssMiB(): Promise<number>;
}

interface DeployOptions {
  readonly namespace: string;
  /** Further settings, by the names of their variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * The control plane and database that all benches of a run share, and what starts the processes
 * they measure.
 */
export interface Stage {
  readonly kubeconfigPath: string;
  /** For what the benches themselves do at the API server. */
  readonly kube: KubeConnection;
  /** For files of a bench. */
  readonly directory: string;
  /** Rejects when the control plane or the database ends. */
  readonly failed: Promise<never>;
  createNamespace(name: string): Promise<void>;
  startRegistry(options: DeployOptions): Promise<RollcallSubject>;
  startOperator(options: DeployOptions): Promise<RollcallSubject>;
  startGateway(options: DeployOptions): Promise<RollcallSubject>;
  /** @param settings all of them. */
  startCommunication(settings: Readonly<Record<string, string>>): Promise<RollcallSubject>;
  /** @param settings all of them. */
  startPayment(settings: Readonly<Record<string, string>>): Promise<RollcallSubject>;
  /** @param settings all of them. */
  startFederation(settings: Readonly<Record<string, string>>): Promise<RollcallSubject>;
  /** Creates an empty database on the server of the run. @returns its URL. */
  createDatabase(name: string): Promise<string>;
  /**
   * Starts HAProxy with this configuration, in which `{port}` stands for the port it is to listen
   * on.
   */
  startHaproxy(binary: SystemBinary, configuration: string): Promise<Subject>;
  /** Starts a bare server of `peers/`. @param args after the port. */
  startPeer(
    name:
      | 'bare-http'
      | 'bare-fastify'
      | 'fastify-gateway'
      | 'grpc-backend'
      | 'subgraphs'
      | 'apollo-gateway'
      | 'mercurius-gateway',
    args: readonly string[],
  ): Promise<Subject>;
}

export interface StageOptions {
  readonly directory: string;
  /** etcd, kube-apiserver and kubectl; with `workloads` the rest too. */
  readonly binaries: Partial<KubernetesBinaries>;
  /** Whether Deployments roll out and (fake) pods run. */
  readonly workloads: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

const KUBE_TIMEOUT_MS = 60_000;
const KUBE_SOCKETS = 64;
const STOP_GRACE_MS = 10_000;

/** Starts what Rollcall stands on. What is started later is stopped with the stack, too. */
export async function startStage(stack: AsyncDisposableStack, options: StageOptions): Promise<Stage> {
  const { directory, log, signal } = options;
  const controlPlane = await startBackend(stack, () =>
    startControlPlane({ ...options, directory: join(directory, 'control-plane') }),
  );
  log('Starting PostgreSQL');
  const postgres = await startBackend(stack, () => startPostgres({ directory: join(directory, 'postgres'), signal }));
  const kube = await connectByFile(controlPlane.kubeconfigPath, {
    clock: systemClock,
    requestTimeoutMs: KUBE_TIMEOUT_MS,
    maxSockets: KUBE_SOCKETS,
  });
  stack.defer(() => kube.close());
  const databaseUrl = await postgres.createDatabase('rollcall');
  const failed = Promise.race([controlPlane.failed, postgres.failed]);
  failed.catch(() => undefined);
  const root = join(directory, 'image');
  await createImageSources(root);
  const start = processStarter(stack, { ...options, controlPlane, root });
  return {
    kubeconfigPath: controlPlane.kubeconfigPath,
    kube,
    directory,
    failed,
    createNamespace: async (name) => {
      await kube.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name } } });
    },
    startRegistry: ({ namespace, settings }) =>
      start.rollcall('registry', 'services/registry/src/main.ts', {
        ROLLCALL_NAMESPACE: namespace,
        ROLLCALL_DATABASE_URL: databaseUrl,
        ROLLCALL_WEBHOOK_ALLOW_UNSIGNED: 'true',
        ...settings,
      }),
    startOperator: ({ namespace, settings }) =>
      start.rollcall('operator', 'operator/src/main.ts', { ROLLCALL_NAMESPACE: namespace, ...settings }),
    startGateway: ({ namespace, settings }) =>
      start.rollcall('gateway', 'services/gateway/src/main.ts', { ROLLCALL_NAMESPACE: namespace, ...settings }),
    startCommunication: (settings) =>
      start.rollcall('communication', 'services/communication/src/main.ts', { ...smallHeap, ...settings }),
    startPayment: (settings) =>
      start.rollcall('payment', 'services/payment/src/main.ts', { ...smallHeap, ...settings }),
    startFederation: (settings) =>
      start.rollcall('federation', 'services/federation/src/main.ts', { ...sharedArenas, ...settings }),
    createDatabase: (name) => postgres.createDatabase(name),
    startHaproxy: (binary, configuration) => startHaproxy(stack, { ...options, binary, configuration }),
    startPeer: start.peer,
  };
}

async function startBackend<T extends AsyncDisposable>(
  stack: AsyncDisposableStack,
  start: () => Promise<T>,
): Promise<T> {
  return stack.use(await start());
}

function stopOf(started: ManagedProcess): () => Promise<void> {
  return () => started.stop({ graceMs: STOP_GRACE_MS });
}

interface ProcessStarter {
  rollcall(name: string, script: string, settings: Readonly<Record<string, string>>): Promise<RollcallSubject>;
  peer: Stage['startPeer'];
}

interface StarterOptions extends StageOptions {
  readonly controlPlane: ControlPlane;
  /** Of the emitted sources. */
  readonly root: string;
}

function processStarter(
  stack: AsyncDisposableStack,
  { directory, env, signal, controlPlane, root }: StarterOptions,
): ProcessStarter {
  const context: ServiceContext = {
    logDirectory: join(directory, 'log'),
    env: {
      ...env,
      ...controlPlane.podEnvironment,
      NODE_ENV: 'production',
      ROLLCALL_HOST: '127.0.0.1',
    },
  };
  let counter = 0;
  return {
    async rollcall(name, script, settings) {
      const [port = 0, adminPort = 0] = await freePorts(2);
      counter += 1;
      const ports = {
        ROLLCALL_PORT: String(port),
        ROLLCALL_GRPC_PORT: '0',
        ROLLCALL_ADMIN_PORT: String(adminPort),
        // What is measured is on this machine.
        ROLLCALL_SERVICE_ADDRESSES: 'any',
      };
      const startedAtMs = performance.now();
      const started = await startService(
        { name: `${name}-${counter}`, script: script.replace(/\.ts$/, '.js'), root, env: { ...ports, ...settings } },
        context,
      );
      stack.defer(stopOf(started));
      await waitUntilReady(started, adminPort, { signal });
      const readyAfterMs = performance.now() - startedAtMs;
      const metrics = async () => parseMetrics(await fetchText(adminPort, '/metrics'));
      return {
        port,
        process: started,
        readyAfterMs,
        metrics,
        cpuMs: async () => sumOf(await metrics(), 'process_cpu_seconds_total') * 1000,
        rssMiB: async () => sumOf(await metrics(), 'process_resident_memory_bytes') / 2 ** 20,
        stop: stopOf(started),
      };
    },
    async peer(name, args) {
      const [port = 0] = await freePorts(1);
      const script = `bench/src/peers/${name}.ts`;
      const startedAtMs = performance.now();
      const started = await startService({ name, script, args: [String(port), ...args] }, context);
      stack.defer(stopOf(started));
      const cpuMs = async () => Number(await fetchText(port, '/cpu'));
      const isUp = () => cpuMs().then(Number.isFinite, () => false);
      await waitUntil(`${name} answers`, isUp, { timeoutMs: 20_000, signal, failed: started.failed });
      return { port, process: started, readyAfterMs: performance.now() - startedAtMs, cpuMs, stop: stopOf(started) };
    },
  };
}

async function fetchText(port: number, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.text();
}
