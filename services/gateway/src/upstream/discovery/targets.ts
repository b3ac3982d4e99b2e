import { discoverInstances } from '@rollcall/client/discovery.ts';
import type { InstanceRecord } from '@rollcall/client/registry-types.ts';
import type { ConnectionOptions } from '@rollcall/client/transport.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { BreakerState } from '@rollcall/platform/outbound/breaker.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Gauge, type Registry } from 'prom-client';
import { type Place, placeOf } from './endpoint.ts';
import { type Endpoints, type MovingEndpoints } from './endpoints.ts';

/** Where a service is. */
export interface Target {
  readonly service: string;
  /** For REST. They live as long as the service. */
  readonly endpoints: Endpoints;
  /**
   * For gRPC, where the service has that capability: who speaks one protocol answers nothing that
   * is right in the other, so that callers of one could have it paused for those of the other.
   */
  readonly grpcEndpoints: Endpoints | undefined;
}

interface Instance {
  readonly record: InstanceRecord;
  /** When this gateway first saw it at this URL; -Infinity: it was there before. */
  readonly joinedAtMs: number;
}

/** A service with the instances of which it is made, by their ids. */
interface KnownService extends Target {
  readonly instances: Map<string, Instance>;
  readonly endpoints: MovingEndpoints;
  grpcEndpoints: MovingEndpoints | undefined;
  /** Whether instances have changed since the endpoints were moved: a list has many at once. */
  isStale: boolean;
}

/** The registry's replicas, or the Kubernetes Service before them. */
interface RegistryConnection extends ConnectionOptions {
  readonly servers: readonly string[];
}

export interface TargetsDeps {
  readonly registry: RegistryConnection;
  readonly endpointsOf: (places: readonly Place[]) => MovingEndpoints;
  readonly grpcEndpointsOf: (places: readonly Place[]) => MovingEndpoints;
  /** The same for the registry, which is where the configuration says. */
  readonly registryEndpoints: (places: readonly Place[]) => Endpoints;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** The services that requests can go to: the registry itself, and what is registered with it. */
export interface Targets {
  readonly actor: Actor;
  /**
   * @returns undefined for what is not registered and not the registry itself. A read of memory.
   */
  find(service: string): Target | undefined;
  /** As {@link find}, without the registry. */
  findRegistered(service: string): Target | undefined;
  /** Whether all registrations have been received at least once. */
  isComplete(): boolean;
}

/** For the registrations to be received before the gateway is ready. */
const FIRST_LIST_MS = 10_000;

/**
 * Under this name the registry's own API is reached, whoever registers the name: signed calls and
 * their secrets go there.
 */
export const REGISTRY = 'registry';

/**
 * Follows the registry's watch. While no registry answers, what was last known is used: a service
 * that has moved meanwhile is found by its failures, one that stayed is not lost.
 */
export function createTargets(deps: TargetsDeps): Targets {
  const { registry, clock, log, metrics } = deps;
  const known = new Map<string, KnownService>();
  let directory: ReturnType<typeof discoverInstances> | undefined;
  let isComplete = false;

  function put(record: InstanceRecord): void {
    const { service_name: service, service_url } = record;
    if (!URL.canParse(service_url)) {
      log.warn({ service }, 'the registered URL is none');
      remove(record);
      return;
    }
    const target = known.get(service) ?? newService(deps, service);
    const before = target.instances.get(instanceOf(record));
    const nowMs = isComplete ? clock.monotonicMs() : Number.NEGATIVE_INFINITY;
    const joinedAtMs = before?.record.service_url === service_url ? before.joinedAtMs : nowMs;
    target.instances.set(instanceOf(record), { record, joinedAtMs });
    target.isStale = true;
    known.set(service, target);
  }

  function remove(instance: InstanceRecord): void {
    const target = known.get(instance.service_name);
    if (target?.instances.delete(instanceOf(instance)) !== true) return;
    target.isStale = true;
    if (target.instances.size === 0) known.delete(instance.service_name);
  }

  function find(service: string): Target | undefined {
    const target = known.get(service);
    if (target?.isStale === true) settle(deps, target);
    return target;
  }

  observe(metrics, () => [...known.keys()].flatMap((service) => find(service) ?? []));
  // The watch goes from one to the next. A target has one origin, so calls go to the first: a
  // Service before several replicas.
  const [own] = registry.servers;
  const ownTarget: Target | undefined =
    own === undefined
      ? undefined
      : { service: REGISTRY, endpoints: deps.registryEndpoints([placeOf(own)]), grpcEndpoints: undefined };

  return {
    actor: {
      name: 'discovery',
      async start() {
        const heard = new AbortController();
        directory = discoverInstances(registry);
        directory.on('change', ({ type, service }) => {
          if (type === 'added' || type === 'modified') put(service);
          else remove(service);
        });
        directory.on('disconnected', ({ error }) => {
          log.warn({ message: error instanceof Error ? error.message : String(error) }, 'registry watch lost');
        });
        directory.on('synced', ({ total }) => {
          isComplete = true;
          heard.abort();
          log.info({ total }, 'registry watch in step');
        });
        // A new replica that knew nothing would refuse what the one that it replaces could have
        // passed on. It is not waited for for long: a gateway that starts while no registry runs
        // serves the rest as soon as there is one.
        await sleep(FIRST_LIST_MS, heard.signal);
      },
      stop: async () => directory?.close(),
    },
    find: (service) => (service === REGISTRY && ownTarget !== undefined ? ownTarget : find(service)),
    findRegistered: find,
    isComplete: () => isComplete,
  };
}

function newService({ endpointsOf }: TargetsDeps, service: string): KnownService {
  return { service, instances: new Map(), endpoints: endpointsOf([]), grpcEndpoints: undefined, isStale: true };
}

/** Moves the endpoints to where the instances are. */
function settle({ grpcEndpointsOf }: TargetsDeps, target: KnownService): void {
  const all = [...target.instances.values()];
  const grpcPlaces = all.filter(({ record }) => record.capabilities.includes('grpc')).map(placeOfInstance);
  target.isStale = false;
  target.endpoints.moveTo(all.map(placeOfInstance));
  if (grpcPlaces.length === 0) target.grpcEndpoints = undefined;
  else if (target.grpcEndpoints === undefined) target.grpcEndpoints = grpcEndpointsOf(grpcPlaces);
  else target.grpcEndpoints.moveTo(grpcPlaces);
}

function instanceOf({ instance_id = '' }: InstanceRecord): string {
  return instance_id;
}

function placeOfInstance({ record, joinedAtMs }: Instance): Place {
  const { service_url, healthy: isServing, zone, weight } = record;
  return placeOf(service_url, { isServing, zone, weight, joinedAtMs });
}

function observe(metrics: Registry, targets: () => readonly Target[]): void {
  const services = new Gauge({
    name: 'rollcall_gateway_services',
    help: 'Registered services by what their circuit breakers say: open where those of all addresses are, for REST or for gRPC.',
    labelNames: ['breaker'],
    registers: [metrics],
    collect() {
      const counts = { closed: 0, open: 0, 'half-open': 0 };
      for (const target of targets())
        counts[worst(endpointsOf(target).map((endpoints) => best(endpoints.states())))] += 1;
      for (const [breaker, count] of Object.entries(counts)) this.set({ breaker }, count);
    },
  });
  services.set({ breaker: 'closed' }, 0);
}

function best(states: readonly BreakerState[]): BreakerState {
  if (states.includes('closed')) return 'closed';
  return states.includes('half-open') ? 'half-open' : 'open';
}

function worst(states: readonly BreakerState[]): BreakerState {
  if (states.includes('open')) return 'open';
  return states.includes('half-open') ? 'half-open' : 'closed';
}

function endpointsOf({ endpoints, grpcEndpoints }: Target): readonly Endpoints[] {
  return grpcEndpoints === undefined ? [endpoints] : [endpoints, grpcEndpoints];
}
