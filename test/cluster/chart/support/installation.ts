import { join } from 'node:path';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { inject } from 'vitest';
import { runHelm } from '../../../support/helm.ts';
import {
  type ClusterNamespace,
  createClusterNamespace,
  noRollcallImage,
  sharedCluster,
} from '../../support/namespace.ts';

/** Whether the chart cannot be installed with its own images. */
export const noChart = noRollcallImage || !sharedCluster().databaseImages;

const CHART = join(REPOSITORY, 'charts', 'rollcall');
const RELEASE = 'rollcall';
/** Milliseconds for a release to be ready; on an idle machine it takes a tenth of that. */
const TIMEOUT = '--timeout=240s';

/** Values of the chart, as far as they are not the defaults. */
export type Values = Readonly<Record<string, unknown>>;

/**
 * A namespace of its own, where Kubernetes enforces the restricted Pod Security Standard, for a
 * release of the chart.
 */
export interface Installation extends AsyncDisposable {
  readonly namespace: ClusterNamespace;
  /** Of the ApiClients; it goes with this. */
  readonly clientsNamespace: string;
  /** Of names in DNS, where the values ask for them; it goes with this. */
  readonly dnsNamespace: string;
  /** Where pods reach the registry. */
  readonly registryUrl: string;
  /** Where they reach the gateway. */
  readonly gatewayUrl: string;
  /**
   * Installs the chart with its defaults but for these values and the definitions, and waits until
   * all is ready.
   */
  install(values?: Values): Promise<void>;
  /** Upgrades to these values, and waits until all is ready. */
  upgrade(values?: Values): Promise<void>;
  /** Returns to a revision, the one before by default, and waits until all is ready. */
  rollback(revision?: number): Promise<void>;
  /** Runs `helm test`. @returns what it prints. */
  test(): Promise<string>;
  /**
   * Uninstalls, without waiting for pods to end: Helm 4.3 often gives that wait up as failed, at
   * once.
   */
  uninstall(): Promise<void>;
}

interface InstallationOptions {
  /**
   * Whether the chart installs the custom resource definitions: one installation at a time, for
   * they can belong to one release.
   */
  readonly crds: boolean;
}

export async function createInstallation({ crds }: InstallationOptions): Promise<Installation> {
  const { helm, kubeconfigPath } = sharedCluster();
  const namespace = await createClusterNamespace();
  await namespace.kubectl('label', 'namespace', namespace.name, 'pod-security.kubernetes.io/enforce=restricted');
  const clientsNamespace = `${namespace.name}-clients`;
  const dnsNamespace = `${namespace.name}-services`;
  const target = { helm, kubeconfigPath, home: join(inject('clusterDirectory'), 'helm') };
  const run = (args: readonly string[], values?: Values): Promise<string> =>
    runHelm(target, [...args, '--namespace', namespace.name], values);
  const common = { image: imageValues(sharedCluster().rollcallImage ?? ''), crds: { install: crds } };
  // Two installations, and what they are tried with, have one node of two processors.
  const small = ['--set', 'defaults.resources.requests.cpu=40m'];
  const uninstall = async (): Promise<void> => {
    await run(['uninstall', RELEASE, '--ignore-not-found']);
  };
  return {
    namespace,
    clientsNamespace,
    dnsNamespace,
    registryUrl: `http://${RELEASE}-registry.${namespace.name}.svc.cluster.local:3001`,
    gatewayUrl: `http://${RELEASE}-gateway.${namespace.name}.svc.cluster.local:3000`,
    install: async (values = {}) => {
      // The definitions are there for all files of the project; on a cluster without, the chart
      // brings its own.
      const adopt = crds ? ['--take-ownership'] : [];
      await run(['install', RELEASE, CHART, ...adopt, ...small, '--wait', TIMEOUT], { ...common, ...values });
    },
    upgrade: async (values = {}) => {
      await run(['upgrade', RELEASE, CHART, ...small, '--wait', TIMEOUT], { ...common, ...values });
    },
    rollback: async (revision) => {
      const which = revision === undefined ? [] : [String(revision)];
      await run(['rollback', RELEASE, ...which, '--wait', TIMEOUT]);
    },
    test: () => run(['test', RELEASE, TIMEOUT]),
    uninstall,
    [Symbol.asyncDispose]: async () => {
      // While those are there who take the finalizers off.
      await namespace.kubectl('delete', 'deliveryjobs', '--all', '--ignore-not-found', '--timeout=60s');
      await uninstall();
      const made = [clientsNamespace, dnsNamespace];
      await namespace.kubectl('delete', 'namespace', ...made, '--ignore-not-found', '--wait=false');
      await namespace[Symbol.asyncDispose]();
    },
  };
}

/** What a full name of an image is in the chart's values. */
function imageValues(name: string): Values {
  const [tagged = '', digest = ''] = name.split('@');
  const colon = tagged.indexOf(':', tagged.lastIndexOf('/'));
  const [repository, tag] = colon < 0 ? [tagged, ''] : [tagged.slice(0, colon), tagged.slice(colon + 1)];
  return { repository, tag, digest };
}
