import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '@rollcall/local/control-plane.ts';
import { type KubectlRun, runKubectl } from '@rollcall/local/kubectl.ts';
import { defaultCacheDirectory, findKubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { findPublishedCrds } from '../../support/published-crds.ts';

/** Pods get addresses that tests can listen on, and that lead nowhere else. */
const POD_CIDR = '127.8.0.1/24';

/** A control plane with pods that kwok makes up, for all tests of a file. */
export interface Cluster extends AsyncDisposable {
  readonly controlPlane: ControlPlane;
  readonly connection: KubeConnection;
  /** For the logs of what runs on it; removed with it. */
  readonly directory: string;
  kubectl(args: readonly string[], run?: KubectlRun): Promise<string>;
}

const report = (line: string) => console.error(line);

/** @param gatewayApi whether HTTPRoutes are there. */
export async function startCluster({ gatewayApi = false } = {}): Promise<Cluster> {
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
  const { kubeconfigPath } = controlPlane;
  const kubectl = (args: readonly string[], run?: KubectlRun) =>
    runKubectl({ kubectl: binaries.kubectl, kubeconfigPath }, args, run);
  if (gatewayApi) {
    const definitions = await findPublishedCrds('gateway-api', { cacheDirectory, log: report });
    await kubectl(['apply', '--server-side', '-f', join(definitions, 'gateway.networking.k8s.io_httproutes.yaml')]);
    await kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
  }
  const connection = await connectByFile(kubeconfigPath, {
    clock: systemClock,
    requestTimeoutMs: 20_000,
    maxSockets: 32,
  });
  stack.defer(() => connection.close());
  const kept = stack.move();
  return { controlPlane, connection, directory, kubectl, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
