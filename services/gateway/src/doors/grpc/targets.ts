import type { Endpoints } from '../../upstream/discovery/endpoints.ts';
import { REGISTRY, type Targets } from '../../upstream/discovery/targets.ts';

/** Where calls of a registered service go. */
export interface GrpcTarget {
  /** The name of the registration. */
  readonly service: string;
  /** `http://host:port` (h2c), or `https://host:port`. */
  readonly origin: string;
  readonly endpoints: Endpoints;
}

/** What is registered. */
export interface GrpcTargets<Target = GrpcTarget> {
  /** The live registration of that name, where it has the capability `grpc`. */
  find(serviceName: string): Target | undefined;
  /** Whether what is registered is known: false until the first list has come. */
  known(): boolean;
}

/**
 * The registrations with the capability grpc, and the registry itself.
 *
 * @param registryOrigin where that offers gRPC; undefined: it is not passed on to.
 */
export function grpcTargets(
  targets: Targets,
  registryOrigin: string | undefined,
  endpointsOf: (hostname: string) => Endpoints,
): GrpcTargets {
  const registry =
    registryOrigin === undefined
      ? undefined
      : { service: REGISTRY, origin: registryOrigin, endpoints: endpointsOf(new URL(registryOrigin).hostname) };
  return {
    find(serviceName) {
      if (serviceName === REGISTRY) return registry;
      const { origin, grpcEndpoints } = targets.findRegistered(serviceName) ?? {};
      if (origin === undefined || grpcEndpoints === undefined) return undefined;
      return { service: serviceName, origin, endpoints: grpcEndpoints };
    },
    known: () => targets.isComplete(),
  };
}
