import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isApiServerReady } from './api-server-probe.ts';
import { type Certificates, createCertificates } from './certificates.ts';
import {
  type CommandContext,
  type ComponentName,
  type ControlPlanePorts,
  componentArguments,
} from './control-plane-commands.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { installCrds, type KubectlTarget, runKubectl } from './kubectl.ts';
import type { KubernetesBinaries } from './kubernetes-binaries.ts';
import type { BinaryName } from './kubernetes-modules.ts';
import { fakeNodes, kwokConfiguration } from './kwok-stages.ts';
import { writePodEnvironment } from './pod-environment.ts';
import { freePorts } from './ports.ts';
import { type ManagedProcess, startProcess } from './processes.ts';
import { waitUntil } from './wait.ts';

export interface ControlPlaneOptions {
  /** For data, certificates, logs and the kubeconfig. The caller removes it. */
  readonly directory: string;
  /** etcd, kube-apiserver and kubectl always; the others as the next two options need them. */
  readonly binaries: Partial<KubernetesBinaries>;
  /** Scheduler, and kwok with three fake nodes, so that pods run. */
  readonly workloads: boolean;
  /**
   * Garbage collection, namespace deletion, Deployments, EndpointSlices, ...; always on with
   * `workloads`.
   */
  readonly controllerManager?: boolean;
  /** Rollcall's custom resource definitions; installed by default. */
  readonly customResources?: boolean;
  /**
   * The namespace of the kubeconfig's context, created when it is not "default"; "default" by
   * default.
   */
  readonly namespace?: string;
  /** Given to a component after its own. */
  readonly extraArguments?: Partial<Readonly<Record<ComponentName, readonly string[]>>>;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** A running control plane on 127.0.0.1. */
export interface ControlPlane extends AsyncDisposable {
  readonly kubeconfigPath: string;
  /** By which a process connects as a pod does, with all rights. */
  readonly podEnvironment: Readonly<Record<string, string>>;
  /** URL of the API server. */
  readonly server: string;
  readonly ports: ControlPlanePorts;
  readonly certificates: Certificates;
  /** The process ids of what runs at the moment. */
  readonly processes: Readonly<Partial<Record<ComponentName, number>>>;
  /** Rejects when a component ends by itself, killed from outside included. */
  readonly failed: Promise<never>;
  /** Ends the API server at once. */
  stopApiServer(): Promise<void>;
  /** Starts it again on the same port and waits until it is ready. */
  startApiServer(): Promise<void>;
}

/** Milliseconds the API server gets to become ready; 3 s suffice on an idle machine. */
const READY_TIMEOUT_MS = 90_000;

/**
 * How much the heap of a component of the control plane may grow before garbage is collected, in
 * percent; Go's default is 100. Here it saves a tenth of the API server's CPU time for some 100
 * MiB.
 */
const GOGC = '200';

/** The data are deleted, so there is nothing to finish. */
const STOP_GRACE_MS = 1_000;

/**
 * Starts etcd and kube-apiserver, installs the custom resource definitions of `crds/`, and starts
 * the rest as asked.
 *
 * @throws with the end of the log when a component ends or does not become ready; nothing is left
 * running then.
 */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { directory, signal, log, namespace = 'default' } = options;
  const begun = performance.now();
  await mkdir(directory, { recursive: true });
  const [etcd = 0, etcdPeer = 0, apiServer = 0] = await freePorts(3);
  const ports = { etcd, etcdPeer, apiServer };
  const server = `https://127.0.0.1:${apiServer}`;
  const kubeconfigPath = join(directory, 'kubeconfig');
  const stagesPath = join(directory, 'kwok-stages.yaml');
  const certificates = await createCertificates(join(directory, 'certificates'));
  const { ca, admin } = certificates;
  await writeKubeconfig(kubeconfigPath, { server, client: admin, namespace });
  const pod = await writePodEnvironment({ directory: join(directory, 'pod'), apiServerPort: apiServer, ca, namespace });
  const { tokenAuthFile } = pod;
  const context: CommandContext = { directory, ports, certificates, tokenAuthFile, kubeconfigPath, stagesPath };
  await using stack = new AsyncDisposableStack();
  const components = stack.use(componentRunner(options, context));
  const { failed } = components;
  const isReady = () => isApiServerReady(server, admin);
  const startApiServer = async (): Promise<void> => {
    await components.start('kube-apiserver');
    await waitUntil('the API server is ready', isReady, { timeoutMs: READY_TIMEOUT_MS, signal, failed });
  };
  await components.start('etcd');
  await startApiServer();
  log(`API server ready after ${Math.round(performance.now() - begun)} ms: ${server}`);
  if (options.workloads || options.controllerManager === true) await components.start('kube-controller-manager');
  const target: KubectlTarget = { kubectl: requiredBinary(options.binaries, 'kubectl'), kubeconfigPath };
  await Promise.all([
    options.customResources === false ? undefined : installCrds(target, signal),
    options.workloads ? startWorkloads(components, { target, stagesPath, signal }) : undefined,
    namespace === 'default' ? undefined : runKubectl(target, ['create', 'namespace', namespace], { signal }),
  ]);
  const kept = stack.move();
  return {
    kubeconfigPath,
    podEnvironment: pod.env,
    server,
    ports,
    certificates,
    failed,
    get processes() {
      return components.pids();
    },
    stopApiServer: () => components.stop('kube-apiserver'),
    startApiServer,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

interface WorkloadsContext {
  readonly target: KubectlTarget;
  readonly stagesPath: string;
  readonly signal: AbortSignal | undefined;
}

async function startWorkloads(components: ComponentRunner, context: WorkloadsContext): Promise<void> {
  const { target, stagesPath, signal } = context;
  await writeFile(stagesPath, kwokConfiguration());
  await Promise.all([components.start('kube-scheduler'), components.start('kwok')]);
  const manager = ['--server-side', '--field-manager', 'rollcall-local'];
  await runKubectl(target, ['apply', ...manager, '-f', '-'], { stdin: fakeNodes(3), signal });
  await runKubectl(target, ['wait', '--for=condition=Ready', '--timeout=60s', 'nodes', '--all'], { signal });
}

function requiredBinary(binaries: Partial<KubernetesBinaries>, name: BinaryName): string {
  const path = binaries[name];
  if (path === undefined) throw new Error(`The control plane was not given the binary ${name}`);
  return path;
}

/** Stops all in reverse order of start. */
interface ComponentRunner extends AsyncDisposable {
  start(name: ComponentName): Promise<void>;
  stop(name: ComponentName): Promise<void>;
  pids(): Partial<Record<ComponentName, number>>;
  readonly failed: Promise<never>;
}

function componentRunner(options: ControlPlaneOptions, context: CommandContext): ComponentRunner {
  const { binaries, directory, extraArguments = {} } = options;
  const running = new Map<ComponentName, ManagedProcess>();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  const stop = async (name: ComponentName): Promise<void> => {
    // The API server's orderly end waits for open watches.
    const signal = name === 'kube-apiserver' ? 'SIGKILL' : 'SIGTERM';
    await running.get(name)?.stop({ signal, graceMs: STOP_GRACE_MS });
    running.delete(name);
  };
  return {
    failed: failure.promise,
    start: async (name) => {
      const started = await startProcess({
        name,
        command: requiredBinary(binaries, name),
        args: [...componentArguments[name](context), ...(extraArguments[name] ?? [])],
        logFile: join(directory, 'log', `${name}.log`),
        // A home of its own keeps the user's settings out and caches in.
        env: { PATH: process.env['PATH'], HOME: directory, GOGC },
      });
      running.set(name, started);
      started.failed.catch(failure.reject);
    },
    stop,
    pids: () => Object.fromEntries([...running].map(([name, { pid }]) => [name, pid])),
    [Symbol.asyncDispose]: async () => {
      for (const name of [...running.keys()].toReversed()) await stop(name);
    },
  };
}
