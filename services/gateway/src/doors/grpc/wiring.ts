import type { Endpoints } from '../../upstream/discovery/endpoints.ts';
import { REGISTRY, type Targets } from '../../upstream/discovery/targets.ts';
import type { GrpcTargets } from './ports.ts';

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
