import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isApiServerReady } from './api-server-probe.ts';
import { createCertificates } from './certificates.ts';
import {
  auditPolicy,
  type CommandContext,
  type ComponentName,
  type ControlPlanePorts,
  componentArguments,
} from './control-plane-commands.ts';
import { compactEtcd } from './etcd.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { installCrds, type KubectlTarget, runKubectl } from './kubectl.ts';
import type { KubernetesBinaries } from './kubernetes-binaries.ts';
import type { BinaryName } from './kubernetes-modules.ts';
import { fakeNodes, kwokConfiguration } from './kwok-stages.ts';
import { writePodEnvironment } from './pod-environment.ts';
import { freePorts } from './ports.ts';
import { logTail, type ManagedProcess, startProcess } from './processes.ts';
import { waitUntil } from './wait.ts';

export interface ControlPlaneOptions {
  /** For data, certificates, logs and the kubeconfig. The caller removes it. */
  readonly directory: string;
  /** etcd, kube-apiserver and kubectl always; the others as the next two options need them. */
  readonly binaries: Partial<KubernetesBinaries>;
  /** By default free ports are used. */
  readonly ports?: ControlPlanePorts;
  /** Scheduler, and kwok with three fake nodes, so that pods run. */
  readonly workloads: boolean;
  /**
   * The range of the addresses of pods, such as 127.8.0.1/24: those of the loopback network can be
   * listened on.
   */
  readonly podCidr?: string;
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
  /**
   * A file for one line of JSON per request (audit.k8s.io/v1 Event): who, what, and how it ended.
   */
  readonly auditLog?: string;
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
  /** The process ids of what runs at the moment. */
  readonly processes: Readonly<Partial<Record<ComponentName, number>>>;
  /** Rejects when a component ends by itself, killed from outside included. */
  readonly failed: Promise<never>;
  /**
   * Ends the API server: at once by default; with SIGTERM it lets requests finish, which with open
   * watches lasts 10 s.
   */
  stopApiServer(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Starts it again on the same port and waits until it is ready. */
  startApiServer(): Promise<void>;
  restartApiServer(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /**
   * See `compactEtcd` in etcd.ts: watches from before get 410 Gone once the API server has been
   * restarted.
   */
  compactEtcd(): Promise<void>;
  stop(): Promise<void>;
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
 * the rest as asked. When another process binds one of the ports first, it is tried once more with
 * others.
 *
 * @throws with the end of the log when a component ends or does not become ready; nothing is left
 * running then.
 */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  if (options.ports !== undefined) return startOnPorts(options, options.ports);
  try {
    return await startOnPorts(options, await findPorts());
  } catch (err) {
    options.signal?.throwIfAborted();
    if (!(await lostPortRace(options.directory))) throw err;
    options.log('A port of the control plane is used by another process; trying others');
    await rm(options.directory, { recursive: true, force: true });
    return startOnPorts(options, await findPorts());
  }
}

async function findPorts(): Promise<ControlPlanePorts> {
  const [etcd, etcdPeer, apiServer] = await freePorts(3);
  if (etcd === undefined || etcdPeer === undefined || apiServer === undefined) throw new Error('Too few ports');
  return { etcd, etcdPeer, apiServer };
}

async function lostPortRace(directory: string): Promise<boolean> {
  const logs = await Promise.all(
    (['etcd', 'kube-apiserver'] as const).map((name) => logTail(logFile(directory, name), 50)),
  );
  return logs.some((log) => log.includes('address already in use'));
}

function logFile(directory: string, component: ComponentName): string {
  return join(directory, 'log', `${component}.log`);
}

async function startOnPorts(options: ControlPlaneOptions, ports: ControlPlanePorts): Promise<ControlPlane> {
  const { directory, signal, log, namespace = 'default' } = options;
  const started = performance.now();
  await mkdir(directory, { recursive: true });
  const server = `https://127.0.0.1:${ports.apiServer}`;
  const kubeconfigPath = join(directory, 'kubeconfig');
  const certificates = await createCertificates(join(directory, 'certificates'));
  const admin = { ca: certificates.ca, certificate: certificates.adminCertificate, key: certificates.adminKey };
  await writeKubeconfig(kubeconfigPath, { server, client: admin, namespace });
  const stagesPath = join(directory, 'kwok-stages.yaml');
  const { podCidr, auditLog } = options;
  const audit = auditLog === undefined ? undefined : { log: auditLog, policy: join(directory, 'audit-policy.yaml') };
  if (audit !== undefined) await writeFile(audit.policy, auditPolicy);
  const pod = await writePodEnvironment({
    directory: join(directory, 'service-account'),
    apiServerPort: ports.apiServer,
    ca: certificates.ca,
    namespace,
  });
  const { tokenAuthFile } = pod;
  const context: CommandContext = {
    directory,
    ports,
    certificates,
    tokenAuthFile,
    kubeconfigPath,
    stagesPath,
    podCidr,
    audit,
  };
  const components = componentRunner(options, context);
  const isReady = (): Promise<boolean> => isApiServerReady(server, admin);
  const startApiServer = async (): Promise<void> => {
    await components.start('kube-apiserver');
    const { failed } = components;
    await waitUntil('the API server is ready', isReady, { timeoutMs: READY_TIMEOUT_MS, signal, failed });
  };
  const target: KubectlTarget = { kubectl: requiredBinary(options.binaries, 'kubectl'), kubeconfigPath };
  try {
    await components.start('etcd');
    await startApiServer();
    log(`API server ready after ${Math.round(performance.now() - started)} ms: ${server}`);
    if (options.workloads || options.controllerManager === true) await components.start('kube-controller-manager');
    await Promise.all([
      options.customResources === false ? undefined : installCrds(target, signal),
      options.workloads ? startWorkloads(components, { target, stagesPath, signal }) : undefined,
      namespace === 'default' ? undefined : runKubectl(target, ['create', 'namespace', namespace], { signal }),
    ]);
  } catch (err) {
    await components.stopAll();
    throw err;
  }
  const stopApiServer = async (how: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> => {
    await components.stop('kube-apiserver', how);
  };
  return {
    kubeconfigPath,
    podEnvironment: pod.env,
    server,
    ports,
    failed: components.failed,
    get processes() {
      return components.pids();
    },
    stopApiServer,
    startApiServer,
    restartApiServer: async (how) => {
      await stopApiServer(how);
      await startApiServer();
    },
    compactEtcd: () => compactEtcd(`http://127.0.0.1:${ports.etcd}`),
    stop: () => components.stopAll(),
    [Symbol.asyncDispose]: () => components.stopAll(),
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

interface ComponentRunner {
  start(name: ComponentName): Promise<ManagedProcess>;
  stop(name: ComponentName, signal: NodeJS.Signals): Promise<void>;
  /** In reverse order of start. */
  stopAll(): Promise<void>;
  pids(): Partial<Record<ComponentName, number>>;
  readonly failed: Promise<never>;
}

function componentRunner({ binaries, directory }: ControlPlaneOptions, context: CommandContext): ComponentRunner {
  const running = new Map<ComponentName, ManagedProcess>();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  const stop = async (name: ComponentName, signal: NodeJS.Signals): Promise<void> => {
    await running.get(name)?.stop({ signal, graceMs: 10_000 });
    running.delete(name);
  };
  return {
    failed: failure.promise,
    start: async (name) => {
      const started = await startProcess({
        name,
        command: requiredBinary(binaries, name),
        args: componentArguments[name](context),
        logFile: logFile(directory, name),
        // A home of its own keeps the user's settings out and caches in.
        env: { PATH: process.env['PATH'], HOME: directory, GOGC },
      });
      running.set(name, started);
      started.failed.catch(failure.reject);
      return started;
    },
    stop,
    stopAll: async () => {
      for (const [name, component] of [...running].toReversed()) {
        // Its orderly end waits for open watches.
        const signal = name === 'kube-apiserver' ? 'SIGKILL' : 'SIGTERM';
        await component.stop({ signal, graceMs: STOP_GRACE_MS });
        running.delete(name);
      }
    },
    pids: () => Object.fromEntries([...running].map(([name, { pid }]) => [name, pid])),
  };
}
