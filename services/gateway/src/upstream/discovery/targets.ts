import { discover } from '@rollcall/client/discovery.ts';
import type { ServiceRecord } from '@rollcall/client/registry-types.ts';
import type { ConnectionOptions } from '@rollcall/client/transport.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Gauge, type Registry } from 'prom-client';
import type { BreakerState } from '../breaker.ts';
import type { Endpoints } from './endpoints.ts';

/** Where a service is. */
export interface Target {
  readonly service: string;
  /** `http://host:port`. */
  readonly origin: string;
  /** Of the registered URL, without a slash at its end. */
  readonly basePath: string;
  /** For REST. They live as long as the service stays where it is. */
  readonly endpoints: Endpoints;
  /**
   * For gRPC, where the service has that capability: who speaks one protocol answers nothing that
   * is right in the other, so that callers of one could have it paused for those of the other.
   */
  readonly grpcEndpoints: Endpoints | undefined;
}

interface KnownService {
  readonly service: string;
  readonly url: string;
  readonly capabilities: readonly string[];
}

/** The registry's replicas, or the Kubernetes Service before them. */
interface RegistryConnection extends ConnectionOptions {
  readonly servers: readonly string[];
}

export interface TargetsDeps {
  readonly registry: RegistryConnection;
  readonly endpointsOf: (hostname: string) => Endpoints;
  /** The same for the registry, which is where the configuration says. */
  readonly registryEndpoints: (hostname: string) => Endpoints;
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
  const { registry, log, metrics } = deps;
  const known = new Map<string, Target>();
  let directory: ReturnType<typeof discover> | undefined;
  let isComplete = false;

  const targetOf = ({ service, url, capabilities }: KnownService, endpointsOf: TargetsDeps['endpointsOf']): Target => {
    const { origin, hostname, pathname } = new URL(url);
    const basePath = pathname.replace(/\/+$/, '');
    const grpcEndpoints = capabilities.includes('grpc') ? endpointsOf(hostname) : undefined;
    return { service, origin, basePath, endpoints: endpointsOf(hostname), grpcEndpoints };
  };

  function put({ service_name, service_url, capabilities }: ServiceRecord): void {
    const previous = known.get(service_name);
    let target: Target;
    try {
      target = targetOf({ service: service_name, url: service_url, capabilities }, deps.endpointsOf);
    } catch {
      known.delete(service_name);
      log.warn({ service: service_name }, 'the registered URL is none');
      return;
    }
    const stayed = previous?.origin === target.origin && previous.basePath === target.basePath;
    known.set(service_name, stayed ? { ...target, ...keptOf(previous, target) } : target);
  }

  observe(metrics, known);
  // The watch goes from one to the next. A target has one origin, so calls go to the first: a
  // Service before several replicas.
  const [own] = registry.servers;
  const ownTarget =
    own === undefined
      ? undefined
      : targetOf({ service: REGISTRY, url: own, capabilities: ['rest'] }, deps.registryEndpoints);

  return {
    actor: {
      name: 'discovery',
      async start() {
        const heard = new AbortController();
        directory = discover(registry);
        directory.on('change', ({ type, service }) => {
          if (type === 'added' || type === 'modified') put(service);
          else known.delete(service.service_name);
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
    find: (service) => (service === REGISTRY && ownTarget !== undefined ? ownTarget : known.get(service)),
    findRegistered: (service) => known.get(service),
    isComplete: () => isComplete,
  };
}

/** What is known of the places where a service was and is. */
function keptOf(previous: Target, { grpcEndpoints }: Target): Pick<Target, 'endpoints' | 'grpcEndpoints'> {
  const kept = grpcEndpoints === undefined ? undefined : (previous.grpcEndpoints ?? grpcEndpoints);
  return { endpoints: previous.endpoints, grpcEndpoints: kept };
}

function observe(metrics: Registry, known: ReadonlyMap<string, Target>): void {
  const services = new Gauge({
    name: 'rollcall_gateway_services',
    help: 'Registered services by what their circuit breakers say: open where those of all addresses are, for REST or for gRPC.',
    labelNames: ['breaker'],
    registers: [metrics],
    collect() {
      const counts = { closed: 0, open: 0, 'half-open': 0 };
      for (const target of known.values())
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
