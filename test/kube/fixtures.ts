import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '@rollcall/platform/clock.ts';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { type ConnectionOptions, connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import {
  type Connectivity,
  createInformer,
  type Informer,
  type InformerOptions,
} from '@rollcall/platform/kube/informer.ts';
import type { Manifest } from '@rollcall/platform/kube/resource-client.ts';
import type { Change } from '@rollcall/platform/kube/store.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { inject, onTestFinished } from 'vitest';

export const connectionOptions: ConnectionOptions = { clock: systemClock, requestTimeoutMs: 20_000, maxSockets: 8 };

const silentLog = createLogger('test', 'silent');

/** The parts of the admin's kubeconfig that tests vary. */
export interface ClusterParts {
  readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string };
  readonly user: { readonly 'client-certificate-data': string; readonly 'client-key-data': string };
  readonly port: number;
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: ClusterParts['cluster'] }[];
  readonly users: readonly { readonly user: ClusterParts['user'] }[];
}

/** @param path of a kubeconfig as the harness writes it: JSON with one entry of each. */
export async function readCluster(path: string): Promise<ClusterParts> {
  const config: Kubeconfig = JSON.parse(await readFile(path, 'utf8'));
  const cluster = config.clusters[0]?.cluster;
  const user = config.users[0]?.user;
  if (cluster === undefined || user === undefined) throw new Error(`${path} is not complete`);
  return { cluster, user, port: Number(new URL(cluster.server).port) };
}

export interface KubeconfigEntries {
  readonly cluster: object;
  readonly user: object;
  readonly namespace?: string;
}

export function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(inject('temporaryDirectory'), 'kube-'));
}

/** @param directory a new one unless given. */
export async function writeKubeconfig(entries: KubeconfigEntries, directory?: string): Promise<string> {
  const path = join(directory ?? (await temporaryDirectory()), 'config');
  const { cluster, user, namespace } = entries;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace } }],
    'current-context': 'x',
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

/**
 * Connects as somebody else, or over another way, than the admin's kubeconfig says; closed when the
 * test ends.
 */
export async function connectWith(
  entries: KubeconfigEntries,
  options: Partial<ConnectionOptions> = {},
): Promise<KubeConnection> {
  return connectFor(await writeKubeconfig(entries), options);
}

/** Connects by a kubeconfig; closed when the test ends. */
export async function connectFor(path: string, options: Partial<ConnectionOptions> = {}): Promise<KubeConnection> {
  const connection = await connectByFile(path, { ...connectionOptions, ...options });
  onTestFinished(() => connection.close());
  return connection;
}

/** What an operation throws; fails the test when it does not. */
export async function errorOf(operation: Promise<unknown>): Promise<Error> {
  try {
    await operation;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new Error('What was thrown is no Error', { cause: error });
  }
  throw new Error('It did not throw');
}

export function leaseManifest(name: string, metadata: Partial<Lease['metadata']> = {}): Manifest<Lease> {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...metadata, name },
    spec: { leaseDurationSeconds: 60 },
  };
}

export interface TestInformerOptions extends Partial<Omit<InformerOptions<Lease>, 'kind'>> {
  readonly connection: KubeConnection;
  /** Added before the one that records. */
  readonly listeners?: readonly ((change: Change<Lease>) => void)[];
  readonly started?: boolean;
  /** Wait for the first list; the default. */
  readonly synced?: boolean;
}

export interface TestInformer {
  readonly informer: Informer<Lease>;
  /** `<change> <name>`, in order. */
  readonly log: string[];
  readonly connectivity: Connectivity[];
  readonly failures: ('list' | 'watch')[];
}

/** An informer of Leases that records what it reports; stopped when the test ends. */
export async function startInformer(options: TestInformerOptions): Promise<TestInformer> {
  const { listeners = [], started = true, synced = started, ...rest } = options;
  const log: string[] = [];
  const connectivity: Connectivity[] = [];
  const failures: ('list' | 'watch')[] = [];
  const informer = createInformer<Lease>({
    kind: leaseKind,
    clock: systemClock,
    log: silentLog,
    onFailure: (operation) => void failures.push(operation),
    ...rest,
  });
  for (const listener of listeners) informer.onChange(listener);
  informer.onChange(({ type, object }) => void log.push(`${type} ${object.metadata.name}`));
  informer.onConnectivity((next) => void connectivity.push(next));
  onTestFinished(() => informer.stop());
  if (started) informer.start();
  if (synced) await informer.synced;
  return { informer, log, connectivity, failures };
}
