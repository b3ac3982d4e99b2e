import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { OwnerReference } from '@rollcall/crds/object-meta.ts';
import { connect, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import type { ProcessContext, ProcessDefinition, ProcessParts } from '@rollcall/platform/process/main.ts';
import { type DeliveryConfig, type OperatorConfig, operatorConfig } from './config.ts';
import { CONCURRENCY, createControllers } from './controllers.ts';
import { createInformers } from './informers.ts';
import { createEventRecorder } from './runtime/events.ts';
import { FIELD_MANAGER } from './runtime/field-manager.ts';
import { createLeaderElection, defaultTimings, LeadershipLostError } from './runtime/leader-election.ts';
import { createRuntimeMetrics } from './runtime/runtime-metrics.ts';

const REQUEST_TIMEOUT_MS = 10_000;
/** Less than the renew deadline, so that a renewal without an answer is tried again. */
const ELECTION_TIMEOUT_MS = 3000;
/** Requests that no worker makes: lists, probes and Events. */
const SPARE_SOCKETS = 8;

/** One replica of the operator. */
export const operatorProcess: ProcessDefinition<OperatorConfig> = {
  name: 'operator',
  manifest: new URL('../package.json', import.meta.url),
  config: operatorConfig,
  isTraced: false,
  parts: operatorParts,
};

/**
 * What one replica of the operator is made of: it follows the API server, competes for the leader
 * Lease and acts while it holds that. After a lost Lease nothing is stopped: the process must exit
 * at once.
 */
async function operatorParts(context: ProcessContext<OperatorConfig>): Promise<ProcessParts> {
  const { config, component, log, clock, environment, metrics: registry } = context;
  const metrics = createRuntimeMetrics(registry);
  const link = {
    clock,
    environment,
    fieldManager: FIELD_MANAGER,
    onRequest: (method: string, code: string, host: string) => metrics.request(method, code, host),
  };
  const connection = await connect({
    ...link,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    maxSockets: CONCURRENCY + SPARE_SOCKETS,
  });
  const electionConnection = await connect({ ...link, requestTimeoutMs: ELECTION_TIMEOUT_MS, maxSockets: 2 });
  const namespace = config.namespace ?? connection.namespace;
  const host = hostname();
  const deliveryNamespaces = namespacesOf(config.delivery, namespace);
  const common = { connection, clock, log };
  const informers = createInformers({
    ...common,
    namespace,
    importing: config.import,
    delivering: { namespaces: deliveryNamespaces },
    mirroring: config.dns?.namespace,
  });
  const events = createEventRecorder({
    ...common,
    component,
    host,
    onDropped: () => metrics.eventDropped(),
    isBusy: () => controllers.isBusy(),
  });
  metrics.eventsPending(() => events.pending());
  const election = createLeaderElection({
    connection: electionConnection,
    namespace,
    leaseName: config.leaderLease,
    identity: `${host}_${randomUUID()}`,
    // Kubernetes searches owners in the namespace of what they own.
    owner: namespace === connection.namespace ? podReference(config.pod) : undefined,
    clock,
    log,
    timings: defaultTimings,
    onChange(isLeader) {
      metrics.leader(config.leaderLease, isLeader);
      if (isLeader) controllers.start();
    },
  });
  metrics.leader(config.leaderLease, false);
  const controllers = createControllers({
    ...common,
    config,
    namespace,
    deliveryNamespaces,
    fieldManager: FIELD_MANAGER,
    informers,
    events,
    leaderLease: () => election.lease(),
    metrics,
    registry,
  });

  return {
    actors: [
      { name: 'connections', start: nothing, stop: () => closeAll([connection, electionConnection]) },
      { name: 'informers', start: () => informers.start(), stop: () => informers.stop() },
      events,
      election,
      // They are started by becoming the leader.
      { name: 'controllers', start: nothing, stop: () => controllers.stop() },
    ],
    waitsFor: () => informers.unsynced(),
    onReady: () => log.info({ namespace }, 'operator is ready'),
    mustAbandon: (failure) => failure instanceof LeadershipLostError,
  };
}

function podReference(pod: OperatorConfig['pod']): OwnerReference | undefined {
  return pod === undefined ? undefined : { apiVersion: 'v1', kind: 'Pod', ...pod };
}

/** None: everywhere. */
function namespacesOf({ namespaces }: DeliveryConfig, own: string): readonly string[] {
  if (namespaces === 'all') return [];
  return namespaces === 'own' ? [own] : namespaces;
}

async function nothing(): Promise<void> {}

async function closeAll(connections: readonly KubeConnection[]): Promise<void> {
  await Promise.all(connections.map((connection) => connection.close()));
}
