import { type Place, placeOf } from '../../upstream/discovery/endpoint.ts';
import { type Endpoints } from '../../upstream/discovery/endpoints.ts';
import { REGISTRY, type Targets } from '../../upstream/discovery/targets.ts';

/** Where calls of a registered service go. */
export interface GrpcTarget {
  /** The name of the registration. */
  readonly service: string;
  /** Origins of `http` are spoken to by h2c. */
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
  endpointsOf: (places: readonly Place[]) => Endpoints,
): GrpcTargets {
  const registry =
    registryOrigin === undefined ? undefined : { service: REGISTRY, endpoints: endpointsOf([placeOf(registryOrigin)]) };
  return {
    find(serviceName) {
      if (serviceName === REGISTRY) return registry;
      const { grpcEndpoints } = targets.findRegistered(serviceName) ?? {};
      return grpcEndpoints === undefined ? undefined : { service: serviceName, endpoints: grpcEndpoints };
    },
    known: () => targets.isComplete(),
  };
}
