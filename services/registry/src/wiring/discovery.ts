import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import { labels, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer, type Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { Counter, Gauge, type Registry } from 'prom-client';
import { RegistryError } from '../common/errors.ts';
import { createLookupLimiter } from '../common/overload.ts';
import type { RegistryConfig } from '../config.ts';
import type { RegistryBackend } from '../grpc/registry-service.ts';
import { createLimitedStreams } from '../http/event-streams.ts';
import type { CacheState } from '../http/health.ts';
import type { Rendered } from '../http/rendered.ts';
import { followInformer } from '../kube/feed-source.ts';
import { createDirectory, type Directory } from '../registrations/domain/directory.ts';
import { createInstanceFeed, createRegistrationFeed, type RegistrationFeed } from '../registrations/domain/feed.ts';
import { createHeartbeats, type Heartbeats } from '../registrations/domain/heartbeats.ts';
import type { RegistrationsDeps } from '../registrations/domain/registrations.ts';
import { instanceRoutes } from '../registrations/routes/instances.ts';
import { renderRegistration } from '../registrations/routes/rendering.ts';
import { reportRoutes } from '../registrations/routes/reports.ts';
import { serviceRoutes, serviceWatchRoute } from '../registrations/routes/services.ts';
import { createNameItems, instanceItems, type NameItems } from '../registrations/store/name-items.ts';
import { createRegistrationStore } from '../registrations/store/registrations.ts';
import type { Routes } from './app.ts';

const FEED_CAPACITY = 10_000;
/** The watch brings what was written within milliseconds, while it is there. */
const STREAM_TIMEOUT_MS = 4000;
const STREAM_BEHIND = 'The watch of the store is behind; try again';

export interface DiscoveryDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  readonly config: Pick<RegistryConfig, 'ttlSeconds' | 'registrationsPerSubject' | 'serviceAddresses'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** Registration, discovery and heartbeats, wired to the API server. */
export interface Discovery {
  readonly routes: readonly Routes[];
  /** What other doors than HTTP work on. */
  readonly backend: RegistryBackend;
  /** Started before the HTTP server: after it, the local copy is complete. */
  readonly actors: readonly Actor[];
  readonly connected: () => boolean;
  /** Undefined: not registered; empty: registered without a version. */
  currentVersion(serviceName: string): string | undefined;
  readonly cache: () => CacheState;
  /** Ends the open event streams, so that the HTTP server can close. */
  closeStreams(): void;
}

export function createDiscovery(deps: DiscoveryDeps): Discovery {
  const { connection, namespace, config, clock, log, metrics } = deps;
  const { ttlSeconds, registrationsPerSubject } = config;
  const informers = createInformers({ connection, namespace, clock, log });
  const connected = () => Object.values(informers).every((informer) => informer.connectivity() === 'connected');
  const lastBeatAt = (id: string) => heartbeats.lastHeardAt(id);
  const directory = createDirectory({ render: renderRegistration, lastBeatAt });
  const feed = createRegistrationFeed(FEED_CAPACITY);
  const instanceFeed = createInstanceFeed(FEED_CAPACITY);
  const nameItems = createNameItems();
  let misses = 0;

  const store = createRegistrationStore({
    connection,
    namespace,
    clock,
    registrations: informers.registrations,
    leases: informers.leases,
    streamed: (serviceName, version) => streamed({ feed, nameItems }, serviceName, version),
    onChange(registration, deleted) {
      const { serviceName } = registration;
      directory.put(serviceName, store.instancesOf(serviceName));
      if (deleted || registration.phase === 'Expired') heartbeats.forget(registration.id);
    },
  });
  const heartbeats = createHeartbeats({
    clock,
    renew: async (life, heartbeat) => {
      // Waiting requests would pile up while the API server hangs.
      if (!connected()) throw new RegistryError('STORE_UNAVAILABLE');
      return store.renew(life, heartbeat);
    },
    onBeat: (life) => directory.touch(life),
    onFlushFailure: (serviceName, message) => log.warn({ serviceName, message }, 'heartbeat not written yet'),
  });
  const lookups = createLookupLimiter();
  const registrations: RegistrationsDeps = {
    store,
    heartbeats,
    oneByOne: createConcurrencyLimiter({ mostPerKey: 1 }),
    misses: {
      run(name, work) {
        misses += 1;
        return lookups.run(name, work);
      },
    },
    mayConnect: addressRules[config.serviceAddresses],
    registrationsPerSubject,
    ttlSeconds,
    clock,
  };

  followLeases({ informers, heartbeats, directory, namespace, ttlSeconds });
  const followed = { connection, namespace, kind: serviceRegistrationKind, informer: informers.registrations };
  const source = followInformer({ ...followed, feed, items: nameItems });
  const instanceSource = followInformer({ ...followed, feed: instanceFeed, items: instanceItems });
  const streams = createLimitedStreams();
  const lastRefreshAt = () => informers.registrations.lastContactAt();
  const cache = () => ({ size: directory.size, hits: directory.hits, misses, lastRefreshAt: lastRefreshAt() });
  const instances = { feed: instanceFeed, source: instanceSource };
  const backend = { registrations, directory, feed, source, instances, lastBeatAt };
  observe(metrics, { cache, watchers: () => streams.size, pending: () => heartbeats.pending() });

  return {
    routes: [
      (app) => serviceWatchRoute(app, { directory, feed, source, streams, instances, lastBeatAt }),
      (app) => serviceRoutes(app, { registrations, directory }),
      (app) => instanceRoutes(app, { registrations, lastBeatAt }),
      (app) => reportRoutes(app, { registrations }),
    ],
    backend,
    actors: [informersActor({ informers, heartbeats })],
    connected,
    currentVersion: (serviceName) => {
      const registration = directory.find(serviceName)?.registration;
      return registration === undefined ? undefined : (registration.currentVersion ?? '');
    },
    cache,
    closeStreams: () => streams.closeAll(),
  };
}

interface Streamed {
  readonly feed: RegistrationFeed;
  readonly nameItems: NameItems;
}

/** Only the watch tells which of several instances is the first. */
async function streamed({ feed, nameItems }: Streamed, serviceName: string, version: number) {
  await feed.whenReached(version, AbortSignal.timeout(STREAM_TIMEOUT_MS));
  const instances = feed.reached < version ? undefined : nameItems.instancesSince(serviceName, version);
  if (instances === undefined) throw new RegistryError('STORE_UNAVAILABLE', STREAM_BEHIND);
  return instances;
}

type Informers = ReturnType<typeof createInformers>;

function createInformers(options: Pick<DiscoveryDeps, 'connection' | 'namespace' | 'clock' | 'log'>) {
  return {
    registrations: createInformer({ ...options, kind: serviceRegistrationKind }),
    leases: createInformer<Lease>({ ...options, kind: leaseKind, labelSelector: `${labels.heartbeat}=true` }),
  };
}

function informersActor({ informers, heartbeats }: Pick<LeaseFollower, 'informers' | 'heartbeats'>): Actor {
  const { registrations, leases } = informers;
  return {
    name: 'informers',
    async start() {
      registrations.start();
      await registrations.synced;
      leases.start();
      await leases.synced;
      // Ready means that /health says so too: a copy that is complete but not followed yet is one
      // that can grow stale.
      await Promise.all([untilConnected(registrations), untilConnected(leases)]);
    },
    async stop() {
      await heartbeats.flushAll();
      await Promise.all([registrations.stop(), leases.stop()]);
    },
  };
}

/** Resolves once the informer follows the API server. */
async function untilConnected({
  connectivity,
  onConnectivity,
}: Pick<Informer<Lease>, 'connectivity' | 'onConnectivity'>) {
  if (connectivity() === 'connected') return;
  const { promise, resolve } = Promise.withResolvers<void>();
  onConnectivity((next) => {
    if (next === 'connected') resolve();
  });
  await promise;
}

interface LeaseFollower {
  readonly informers: Informers;
  readonly heartbeats: Heartbeats;
  readonly directory: Directory<Rendered>;
  readonly namespace: string;
  readonly ttlSeconds: number;
}

/** Heartbeats that other replicas wrote count here as if they had come here. */
function followLeases(deps: LeaseFollower): void {
  const { informers, heartbeats, directory, namespace } = deps;

  function note(lease: Lease, isNews: boolean): void {
    const { ownerUid: id, renewTime, ageMs, ttlSeconds = deps.ttlSeconds } = heartbeatOf(lease);
    const registration = informers.registrations.store.get(`${namespace}/${lease.metadata.name}`);
    // What is left of an earlier life would be remembered for ever.
    if (id === undefined || renewTime === undefined || registration?.metadata.uid !== id) return;
    const { serviceName, instanceId } = registration.spec;
    const at = new Date(renewTime);
    const key = { serviceName, instanceId, id, ttlSeconds };
    if (isNews) heartbeats.sawDurable(key, { at, ageMs });
    else heartbeats.learned(key, at);
    directory.touch({ serviceName, id });
  }

  informers.leases.onStream((news) => {
    if (news.type === 'stored') note(news.object, true);
    else if (news.type === 'listed') for (const lease of news.objects) note(lease, false);
  });
  // Without its Lease a registration is over, or its heartbeats begin anew: nothing may be absorbed
  // any more.
  informers.leases.onChange((change) => {
    const id = change.type === 'deleted' ? heartbeatOf(change.object).ownerUid : undefined;
    if (id !== undefined) heartbeats.forget(id);
  });
  // A Lease may come before its registration does.
  informers.registrations.onChange((change) => {
    const lease = change.type === 'added' ? informers.leases.store.get(objectKey(change.object)) : undefined;
    if (lease !== undefined) note(lease, false);
  });
}

interface Observed {
  readonly cache: Discovery['cache'];
  readonly watchers: () => number;
  readonly pending: () => number;
}

function observe(metrics: Registry, observed: Observed): void {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [metrics],
      collect() {
        this.set(read());
      },
    });
  gauge('rollcall_registry_services', 'Discoverable services in memory.', () => observed.cache().size);
  gauge('rollcall_registry_watchers', 'Open event streams.', observed.watchers);
  gauge('rollcall_registry_pending_heartbeats', 'Heartbeats acknowledged and not written yet.', observed.pending);
  const lookUps = new Counter({
    name: 'rollcall_registry_lookups_total',
    help: 'Lookups of one service by where the answer came from.',
    labelNames: ['result'],
    registers: [metrics],
    collect() {
      const { hits, misses } = observed.cache();
      this.reset();
      this.inc({ result: 'hit' }, hits);
      this.inc({ result: 'miss' }, misses);
    },
  });
  lookUps.inc({ result: 'hit' }, 0);
}
