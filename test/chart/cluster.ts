import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '@rollcall/local/control-plane.ts';
import { type KubectlRun, runKubectl } from '@rollcall/local/kubectl.ts';
import { defaultCacheDirectory } from '@rollcall/local/kubernetes-binaries.ts';
import { inject } from 'vitest';
import { type CrdModule, findPublishedCrds } from '../support/published-crds.ts';
import { NAMESPACE } from './chart.ts';

/**
 * Of each project the definitions that the chart or the operator use: the API server takes many
 * times as long for all.
 */
const USED: Readonly<Record<CrdModule, readonly string[]>> = {
  'gateway-api': ['gateway.networking.k8s.io_httproutes.yaml', 'gateway.networking.k8s.io_grpcroutes.yaml'],
  'cert-manager': ['cert-manager.io_certificates.yaml'],
  'prometheus-operator': ['podmonitors', 'servicemonitors', 'prometheusrules'].map(
    (plural) => `monitoring.coreos.com_${plural}.yaml`,
  ),
};

/** A control plane of one test file's own. */
export interface ChartCluster extends AsyncDisposable {
  readonly controlPlane: ControlPlane;
  readonly kubeconfig: string;
  /** The audit log; empty unless it was asked for. */
  readonly auditLog: string;
  kubectl(args: readonly string[], run?: KubectlRun): Promise<string>;
}

export interface ChartClusterOptions {
  /** Names the directory. */
  readonly name: string;
  /** Whether Rollcall's own custom resources are known; true by default. */
  readonly customResources?: boolean;
  /** Other projects whose custom resources are known, as far as they are used. */
  readonly crds?: readonly CrdModule[];
  /** Fake nodes, on which pods become ready. */
  readonly workloads?: boolean;
  /** Namespaces besides {@link NAMESPACE}. */
  readonly namespaces?: readonly string[];
  readonly isAudited?: boolean;
}

export async function startChartCluster(options: ChartClusterOptions): Promise<ChartCluster> {
  const { name, customResources = true, crds = [], workloads = false, namespaces = [], isAudited = false } = options;
  const directory = join(inject('temporaryDirectory'), name);
  const auditLog = join(directory, 'audit.log');
  await using stack = new AsyncDisposableStack();
  const controlPlane = stack.use(
    await startControlPlane({
      directory,
      binaries: inject('kubernetesBinaries'),
      workloads,
      controllerManager: true,
      customResources,
      ...(isAudited ? { extraArguments: { 'kube-apiserver': await auditArguments(directory, auditLog) } } : {}),
      log: () => undefined,
    }),
  );
  const target = { kubectl: inject('kubernetesBinaries').kubectl, kubeconfigPath: controlPlane.kubeconfigPath };
  const kubectl = (args: readonly string[], run?: KubectlRun) => runKubectl(target, args, run);
  for (const namespace of [NAMESPACE, ...namespaces]) await kubectl(['create', 'namespace', namespace]);
  await installPublishedCrds(crds, kubectl);
  const kept = stack.move();
  return {
    controlPlane,
    kubeconfig: controlPlane.kubeconfigPath,
    auditLog,
    kubectl,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Makes the API server know the custom resources of other projects, as far as they are used. */
export async function installPublishedCrds(
  modules: readonly CrdModule[],
  kubectl: (args: readonly string[]) => Promise<string>,
): Promise<void> {
  for (const module of modules) {
    const found = await findPublishedCrds(module, {
      cacheDirectory: defaultCacheDirectory(process.env),
      log: (line) => console.error(line),
    });
    const files = USED[module].flatMap((file) => ['-f', join(found, file)]);
    await kubectl(['apply', '--server-side', ...files]);
    await kubectl(['wait', '--for=condition=Established', '--timeout=60s', ...files]);
  }
}

/**
 * Every request once, when it has been answered or, for a watch, when it has begun; without bodies.
 */
async function auditArguments(directory: string, auditLog: string): Promise<string[]> {
  const policy = join(directory, 'audit-policy.yaml');
  const rules = [{ level: 'Metadata' }];
  const manifest = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules };
  await mkdir(directory, { recursive: true });
  await writeFile(policy, JSON.stringify(manifest));
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${auditLog}`, '--audit-log-mode=blocking'];
}
