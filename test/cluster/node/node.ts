import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isApiServerReady } from '@rollcall/local/api-server-probe.ts';
import { installCrds, type KubectlTarget, runKubectl } from '@rollcall/local/kubectl.ts';
import type { KubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { type ManagedProcess, startProcess } from '@rollcall/local/processes.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { writeNodeImages } from '../images/images.ts';
import type { NodeAddresses } from './addresses.ts';
import { createPki, identity } from './certificates.ts';
import { createCgroups } from './cgroups.ts';
import { runCommand } from './command.ts';
import { type NodeComponent, type NodeContext, nodeArguments, nodeFiles } from './components.ts';
import { corednsManifest } from './coredns.ts';
import { installGuard, linkNode } from './network.ts';
import { createPolicyEnforcement, type PolicyEnforcement } from './policy-enforcement.ts';
import { claimSlot, clearSlot, recordFirstProcess, type Slot } from './slots.ts';
import { createStorage } from './storage.ts';

export const NODE_BINARIES = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
  'kubelet',
  'kube-proxy',
  'coredns',
  'pause',
] as const;

export interface NodeOptions {
  readonly binaries: KubernetesBinaries<(typeof NODE_BINARIES)[number]>;
  /** Of `findPackages`. */
  readonly packages: string | undefined;
  /** Writes a docker-archive with images that the node is to have. */
  readonly writeImages: (file: string) => Promise<void>;
  /** Further docker-archives. */
  readonly archives?: readonly string[];
  readonly log: (line: string) => void;
}

/**
 * A Kubernetes cluster of one real node in namespaces of its own: real pods, Services, DNS and
 * NetworkPolicies, reachable from this host alone.
 */
export interface LocalNode extends AsyncDisposable {
  readonly kubeconfigPath: string;
  readonly addresses: NodeAddresses;
  /** Host's id of the node's first process. */
  readonly pid: number;
  /** For logs, below `log`; removed with the node. */
  readonly directory: string;
  /** Rejects when a component ends by itself, or NetworkPolicies cannot be enforced. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

const NODE_NAME = 'node';

/**
 * What the node's processes find their programs in; the packages of the distribution are there on
 * the node.
 */
const NODE_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Milliseconds for each step of the start; the whole start takes 10 s on an idle machine. */
const STEP_TIMEOUT_MS = 180_000;

/**
 * Starts a node, with the custom resource definitions installed, and waits until it is Ready and
 * has DNS. It ends with this process, however that ends; only files and empty cgroups can stay
 * then, which the next start removes.
 *
 * @throws with the end of the log when a component ends or does not become ready; nothing is left
 * then.
 */
export async function startNode(options: NodeOptions): Promise<LocalNode> {
  await installGuard();
  const slot = await claimSlot();
  const runner = new NodeRunner(slot);
  try {
    await startIn(slot, runner, options);
  } catch (err) {
    await runner.stop();
    throw err;
  }
  return {
    kubeconfigPath: adminKubeconfig(slot),
    addresses: slot.addresses,
    pid: runner.pid,
    directory: slot.directory,
    failed: runner.failed,
    stop: () => runner.stop(),
    [Symbol.asyncDispose]: () => runner.stop(),
  };
}

function adminKubeconfig({ directory }: Slot): string {
  return join(directory, 'pki', 'admin.kubeconfig');
}

async function startIn(slot: Slot, runner: NodeRunner, options: NodeOptions): Promise<void> {
  const { addresses, directory } = slot;
  const { binaries, log } = options;
  const started = performance.now();
  const report = (what: string): void =>
    log(`node ${addresses.id}: ${what} after ${seconds(performance.now() - started)}`);
  const file = (name: string): string => join(directory, name);
  const pki = await createPki({ directory: file('pki'), addresses, nodeName: NODE_NAME });
  const context: NodeContext = { addresses, nodeName: NODE_NAME, pki, file };
  for (const [name, content] of Object.entries(nodeFiles(context))) {
    await mkdir(dirname(file(name)), { recursive: true });
    await writeFile(file(name), content);
  }
  await createCgroups(addresses.cgroup);
  await runner.enter(options.packages ?? '');
  const start = (name: NodeComponent) => runner.start(name, [binaries[name], ...nodeArguments[name](context)]);
  await Promise.all([
    start('etcd'),
    start('kube-apiserver'),
    runner.start('containerd', ['containerd', '--config', file('containerd.toml')]),
  ]);
  const images = importImages(runner, file, options);
  // Awaited below; a failure in the meantime is no unhandled one.
  images.catch(() => undefined);
  const isReady = () => isApiServerReady(`https://${addresses.node}:6443`, identity(pki, 'admin'));
  await waitUntil('the API server is ready', isReady, { timeoutMs: STEP_TIMEOUT_MS, failed: runner.failed });
  report('API server ready');
  await Promise.all([start('kube-controller-manager'), start('kube-scheduler')]);
  const target: KubectlTarget = { kubectl: binaries.kubectl, kubeconfigPath: pki('admin.kubeconfig') };
  await Promise.all([images, installCrds(target), runner.enforcePolicies(target.kubeconfigPath)]);
  report('images there');
  await Promise.all([start('kubelet'), start('kube-proxy')]);
  await runKubectl(target, ['apply', '-f', '-'], { stdin: corednsManifest(addresses) });
  const storage = await createStorage({ directory: file('volumes'), nodeName: NODE_NAME });
  await runKubectl(target, ['apply', '-f', '-'], { stdin: storage });
  await Promise.race([runner.failed, waitForPods(target)]);
  report('Ready, with DNS');
}

async function waitForPods(target: KubectlTarget): Promise<void> {
  const timeout = `--timeout=${STEP_TIMEOUT_MS / 1000}s`;
  await runKubectl(target, ['wait', '--for=create', timeout, `node/${NODE_NAME}`]);
  await runKubectl(target, ['wait', '--for=condition=Ready', timeout, `node/${NODE_NAME}`]);
  await runKubectl(target, ['rollout', 'status', '--namespace=kube-system', timeout, 'deployment/coredns']);
}

async function importImages(runner: NodeRunner, file: (name: string) => string, options: NodeOptions): Promise<void> {
  const own = [file('node-images.tar'), file('images.tar')] as const;
  const written = Promise.all([writeNodeImages(own[0], options.binaries), options.writeImages(own[1])]);
  written.catch(() => undefined);
  const answers = async (): Promise<boolean> =>
    runner.run(['ctr', 'version']).then(
      () => true,
      () => false,
    );
  const { failed } = runner;
  await waitUntil('containerd answers', answers, { timeoutMs: STEP_TIMEOUT_MS, intervalMs: 200, failed });
  await written;
  for (const archive of [...own, ...(options.archives ?? [])]) {
    await runner.run(['ctr', '-n', 'k8s.io', 'images', 'import', '--snapshotter', 'overlayfs', archive]);
  }
}

/** Makes the namespaces of a node, and starts and ends what runs in them. */
class NodeRunner {
  readonly failed: Promise<never>;
  pid = 0;
  private readonly slot: Slot;
  private readonly failure = Promise.withResolvers<never>();
  /** In order of start; the first is `unshare`, the others are `nsenter`. */
  private readonly processes: ManagedProcess[] = [];
  private policies: PolicyEnforcement | undefined;
  private stopped: Promise<void> | undefined;

  constructor(slot: Slot) {
    this.slot = slot;
    this.failed = this.failure.promise;
    this.failed.catch(() => undefined);
  }

  /** Makes the namespaces and links them to the host. */
  async enter(packages: string): Promise<void> {
    const { addresses, directory } = this.slot;
    const script = join(import.meta.dirname, 'init.sh');
    const namespaces = ['--net', '--mount', '--uts', '--ipc', '--pid', '--mount-proc', '--propagation=private'];
    const args = ['--fork', '--kill-child=SIGKILL', ...namespaces, '--', 'bash', script];
    const settings = [directory, NODE_NAME, addresses.node, addresses.serviceRange, packages];
    const unshare = await this.spawn('init', ['unshare', ...args, ...settings]);
    const hasStarted = async (): Promise<boolean> => {
      const children = await readFile(`/proc/${unshare.pid}/task/${unshare.pid}/children`, 'utf8').catch(() => '');
      this.pid = Number.parseInt(children, 10) || 0;
      return this.pid > 0;
    };
    const wait = { timeoutMs: STEP_TIMEOUT_MS, intervalMs: 10, failed: this.failed };
    await waitUntil('the first process of the node has started', hasStarted, wait);
    await recordFirstProcess(this.slot, this.pid);
    await linkNode(addresses, this.pid);
    await waitUntil('the namespaces are ready', async () => existsSync(join(directory, 'ready')), wait);
  }

  /** Starts a program that runs as long as the node. */
  async start(name: string, command: readonly string[]): Promise<void> {
    await this.spawn(name, [...this.prefix(), ...command]);
  }

  /** Runs a program on the node to its end. */
  run(command: readonly string[]): Promise<string> {
    return runCommand([...this.prefix(), ...command]);
  }

  /** Puts NetworkPolicies into force, as long as the node is there. */
  async enforcePolicies(kubeconfigPath: string): Promise<void> {
    const file = join(this.slot.directory, 'network-policies.nft');
    const policies = await createPolicyEnforcement({
      kubeconfigPath,
      load: async (ruleset) => {
        await writeFile(file, ruleset);
        await this.run(['nft', '--file', file]);
      },
      onFailure: this.failure.reject,
    });
    this.policies = policies;
    // The start has failed meanwhile.
    if (this.stopped !== undefined) return policies[Symbol.asyncDispose]();
    await policies.start();
  }

  private prefix(): string[] {
    return ['nsenter', '--target', String(this.pid), '--mount', '--net', '--pid', '--uts', '--ipc', '--'];
  }

  private async spawn(name: string, [command = '', ...args]: readonly string[]): Promise<ManagedProcess> {
    const { directory } = this.slot;
    const logFile = join(directory, 'log', `${name}.log`);
    const env = { PATH: NODE_PATH, HOME: directory };
    const started = await startProcess({ name, command, args, logFile, env });
    this.processes.push(started);
    started.failed.catch(this.failure.reject);
    return started;
  }

  stop(): Promise<void> {
    this.stopped ??= this.stopNow();
    return this.stopped;
  }

  private async stopNow(): Promise<void> {
    await this.policies?.[Symbol.asyncDispose]();
    // First who entered from outside: as the parent of a process on the node, a stopped one would
    // never let that be reaped.
    for (const each of this.processes.slice(1)) await each.stop({ signal: 'SIGKILL' });
    await this.processes[0]?.stop({ signal: 'SIGKILL' });
    await clearSlot(this.slot);
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
