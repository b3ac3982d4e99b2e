import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '@rollcall/local/control-plane.ts';
import { type KubectlRun, runKubectl } from '@rollcall/local/kubectl.ts';
import { defaultCacheDirectory, findKubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { findPublishedCrds } from '../../support/published-crds.ts';

/** Pods get addresses that tests can listen on, and that lead nowhere else: enough for all tests of a run. */
const POD_CIDR = '127.8.0.1/22';
export const POD_ADDRESSES = [0, 1, 2, 3].flatMap((block) =>
  Array.from({ length: 254 }, (_, index) => `127.8.${block}.${index + 1}`),
);

/** By which a process uses a cluster, whoever has started it. */
export interface ClusterFacts
  extends Pick<ControlPlane, 'kubeconfigPath' | 'podEnvironment' | 'server' | 'certificates'> {
  readonly kubectlPath: string;
  /** For the logs of what runs on it; removed with it. */
  readonly directory: string;
}

/** A control plane with pods that kwok makes up, and with HTTPRoutes. */
export interface Cluster extends AsyncDisposable {
  readonly facts: ClusterFacts;
  readonly connection: KubeConnection;
  kubectl(args: readonly string[], run?: KubectlRun): Promise<string>;
}

/** A cluster that goes when it is disposed of. */
export interface OwnCluster extends Cluster {
  readonly controlPlane: ControlPlane;
}

const report = (line: string) => console.error(line);

/** Uses the one that the files of a run share: whatever a test does is within its namespace. */
export async function joinCluster(facts: ClusterFacts): Promise<Cluster> {
  const { kubectlPath, kubeconfigPath } = facts;
  const connection = await connectByFile(kubeconfigPath, {
    clock: systemClock,
    requestTimeoutMs: 20_000,
    maxSockets: 32,
  });
  return {
    facts,
    connection,
    kubectl: (args, run) => runKubectl({ kubectl: kubectlPath, kubeconfigPath }, args, run),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

/** Starts one, to be broken or to be shared. */
export async function startCluster(): Promise<OwnCluster> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-e2e-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const cacheDirectory = defaultCacheDirectory(process.env);
  const binaries = await findKubernetesBinaries(
    ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl', 'kwok'],
    { assetsDirectory: process.env['KUBEBUILDER_ASSETS'], cacheDirectory, log: report },
  );
  const controlPlane = stack.use(
    await startControlPlane({
      directory: join(directory, 'control-plane'),
      binaries,
      workloads: true,
      extraArguments: { kwok: [`--cidr=${POD_CIDR}`] },
      log: () => undefined,
    }),
  );
  const { kubeconfigPath, podEnvironment, server, certificates } = controlPlane;
  const facts = { kubectlPath: binaries.kubectl, kubeconfigPath, podEnvironment, server, certificates, directory };
  const cluster = stack.use(await joinCluster(facts));
  const definitions = await findPublishedCrds('gateway-api', { cacheDirectory, log: report });
  const routes = join(definitions, 'gateway.networking.k8s.io_httproutes.yaml');
  await cluster.kubectl(['apply', '--server-side', '-f', routes]);
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
  const kept = stack.move();
  return { ...cluster, controlPlane, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
