import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { type ControlPlane, startControlPlane } from '@rollcall/local/control-plane.ts';
import { type KubectlRun, runKubectl } from '@rollcall/local/kubectl.ts';
import { defaultCacheDirectory, findKubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { type Postgres, startPostgres } from '@rollcall/local/postgres.ts';
import { type Redis, startRedis } from '@rollcall/local/redis.ts';
import { findRedisBinary } from '@rollcall/local/redis-binary.ts';
import { createServiceRole } from '@rollcall/local/service-role.ts';
import { startServiceProxy } from './service-proxy.ts';
import { type Supervised, supervise } from './supervised.ts';

const NAMESPACE = 'rollcall';

/** Rollcall on a control plane and a database of its own, to be broken. */
export interface Deployment extends AsyncDisposable {
  readonly controlPlane: ControlPlane;
  readonly postgres: Postgres;
  /** An administrator's. */
  readonly databaseUrl: string;
  readonly registries: readonly Supervised[];
  readonly operators: readonly Supervised[];
  readonly gateways: readonly Supervised[];
  /** Undefined where there are no gateways. */
  readonly redis: Redis | undefined;
  kubectl(args: readonly string[], run?: KubectlRun): Promise<string>;
}

export interface DeploymentOptions {
  readonly registries: number;
  readonly operators: number;
  /** Of the registries, by the names of their variables. */
  readonly registrySettings?: Readonly<Record<string, string>>;
  /** None by default. With any there is a Redis, too. */
  readonly gateways?: number;
  /** Of the gateways, by the names of their variables. */
  readonly gatewaySettings?: Readonly<Record<string, string>>;
}

export async function startDeployment(options: DeploymentOptions): Promise<Deployment> {
  const { registries, operators, gateways = 0, registrySettings = {}, gatewaySettings = {} } = options;
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-e2e-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const binaries = await findKubernetesBinaries(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'], {
    assetsDirectory: process.env['KUBEBUILDER_ASSETS'],
    cacheDirectory: defaultCacheDirectory(process.env),
    log: (line) => console.error(line),
  });
  const controlPlane = stack.use(
    await startControlPlane({
      directory: join(directory, 'control-plane'),
      binaries,
      workloads: false,
      controllerManager: true,
      namespace: NAMESPACE,
      log: () => undefined,
    }),
  );
  const postgres = stack.use(await startPostgres({ directory: join(directory, 'postgres') }));
  const databaseUrl = await postgres.createDatabase('rollcall');
  const common = { logDirectory: directory, access: controlPlane.podEnvironment, namespace: NAMESPACE };
  const replicas = (count: number, script: string, settings: Record<string, string> = {}) =>
    Promise.all(Array.from({ length: count }, async () => stack.use(await supervise(script, { ...common, settings }))));
  const started = {
    registries: await replicas(registries, 'services/registry/src/main.ts', {
      ROLLCALL_DATABASE_URL: await createServiceRole(databaseUrl, 'registry'),
      ROLLCALL_WEBHOOK_ALLOW_UNSIGNED: 'true',
      ...registrySettings,
    }),
    operators: await replicas(operators, 'operator/src/main.ts'),
  };
  const hasGateways = gateways > 0;
  const redis = hasGateways ? stack.use(await startOwnRedis(join(directory, 'redis'))) : undefined;
  const registryPorts = started.registries.map(({ grpcPort }) => grpcPort);
  const registryGrpc = hasGateways ? stack.use(await startServiceProxy(registryPorts)) : undefined;
  const settings = {
    ROLLCALL_REGISTRY_URLS: started.registries.map(({ current }) => current.url).join(','),
    ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${registryGrpc?.port}`,
    ROLLCALL_REDIS_URL: redis?.url ?? '',
    ...gatewaySettings,
  };
  const startedGateways = await replicas(gateways, 'services/gateway/src/main.ts', settings);
  const kept = stack.move();
  return {
    ...started,
    gateways: startedGateways,
    redis,
    controlPlane,
    postgres,
    databaseUrl,
    kubectl: (args, run) =>
      runKubectl({ kubectl: binaries.kubectl, kubeconfigPath: controlPlane.kubeconfigPath }, args, run),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function startOwnRedis(directory: string): Promise<Redis> {
  const binary = await findRedisBinary({
    redisServer: process.env['REDIS_SERVER'],
    cacheDirectory: cacheDirectory(process.env, 'redis'),
    log: (line) => console.error(line),
  });
  return startRedis({ directory, binary });
}
