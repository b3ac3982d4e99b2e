import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { OwnerReference } from '@rollcall/crds/object-meta.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Environment } from '@rollcall/platform/config.ts';
import { adminServer } from '@rollcall/platform/http/admin.ts';
import { connect, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { type Actor, runActors } from '@rollcall/platform/lifecycle.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { createMetrics } from '@rollcall/platform/metrics.ts';
import type { DeliveryConfig, OperatorConfig } from './config.ts';
import { type Controllers, createControllers } from './controllers.ts';
import { createInformers, type Informers } from './informers.ts';
import { createEventRecorder } from './runtime/events.ts';
import { createLeaderElection, defaultTimings, LeadershipLostError } from './runtime/leader-election.ts';
import { createRuntimeMetrics } from './runtime/runtime-metrics.ts';

const COMPONENT = 'rollcall-operator';
const REQUEST_TIMEOUT_MS = 10_000;
/** Less than the renew deadline, so that a renewal without an answer is tried again. */
const ELECTION_TIMEOUT_MS = 3000;
/** Requests that no worker makes: lists, probes and Events. */
const SPARE_SOCKETS = 8;
const STOP_GRACE_MS = 20_000;

export interface OperatorDeps {
  readonly config: OperatorConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly environment: Environment;
  /** Resolves with the reason when the process is to stop. */
  readonly stopRequested: Promise<string>;
}

/**
 * Runs one replica of the operator: it follows the API server, competes for the leader Lease and
 * acts while it holds that.
 *
 * @returns the exit code for the process, which must exit at once: after a lost Lease nothing was
 * stopped.
 */
export async function runOperator({ config, log, clock, environment, stopRequested }: OperatorDeps): Promise<number> {
  const registry = createMetrics('operator');
  const metrics = createRuntimeMetrics(registry);
  const link = {
    clock,
    environment,
    fieldManager: COMPONENT,
    onRequest: (method: string, code: string, host: string) => metrics.request(method, code, host),
  };
  const connection = await connect({
    ...link,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    maxSockets: config.concurrency + config.delivery.concurrency + SPARE_SOCKETS,
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
  });
  const events = createEventRecorder({
    ...common,
    component: COMPONENT,
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
    fieldManager: COMPONENT,
    informers,
    events,
    leaderLease: () => election.lease(),
    metrics,
    registry,
  });

  let stopping = false;
  const unready = () => (stopping ? 'stopping' : informers.unsynced());
  const actors: readonly Actor[] = [
    adminServer({ host: config.host, port: config.adminPort, metrics: registry, unready }),
    connectionsActor([connection, electionConnection]),
    informersActor(informers),
    events,
    election,
    controllersActor(controllers),
  ];
  return runActors(actors, {
    log,
    stopRequested,
    graceMs: STOP_GRACE_MS,
    onReady: () => log.info({ namespace }, 'operator is ready'),
    onStopping: () => void (stopping = true),
    mustAbandon: (failure) => failure instanceof LeadershipLostError,
  });
}

function podReference(pod: OperatorConfig['pod']): OwnerReference | undefined {
  return pod === undefined ? undefined : { apiVersion: 'v1', kind: 'Pod', ...pod };
}

/** None: everywhere. */
function namespacesOf({ namespaces }: DeliveryConfig, own: string): readonly string[] {
  if (namespaces === 'all') return [];
  return namespaces === 'own' ? [own] : namespaces;
}

function connectionsActor(connections: readonly KubeConnection[]): Actor {
  return {
    name: 'connections',
    start: async () => {},
    stop: async () => void (await Promise.all(connections.map((connection) => connection.close()))),
  };
}

function informersActor(informers: Informers): Actor {
  return { name: 'informers', start: () => informers.start(), stop: () => informers.stop() };
}

/** They are started by becoming the leader. */
function controllersActor(controllers: Controllers): Actor {
  return { name: 'controllers', start: async () => {}, stop: () => controllers.stop() };
}
