import { grpcOperation } from '@rollcall/platform/http/scopes.ts';
import type { Limits } from '../../admission/limits.ts';
import type { Endpoints } from '../../upstream/discovery/endpoints.ts';
import { REGISTRY, type Targets } from '../../upstream/discovery/targets.ts';
import type { GrpcMethod, GrpcTarget, GrpcTargets, TakeCall } from './ports.ts';
import { REGISTRY_PACKAGE } from './routing.ts';

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
  const registry = registryOrigin === undefined ? undefined : registryAt(registryOrigin, endpointsOf);
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

function registryAt(origin: string, endpointsOf: (hostname: string) => Endpoints): GrpcTarget {
  return { service: REGISTRY, origin, endpoints: endpointsOf(new URL(origin).hostname), scopesFor: registryScopes };
}

/** Health and reflection are for everybody. */
function registryScopes({ service, method }: GrpcMethod): readonly string[] {
  const scope = service.startsWith(REGISTRY_PACKAGE) ? grpcOperation(method)?.scope : undefined;
  return scope === undefined ? [] : [scope];
}

/** Calls count like requests. */
export function takeCall(limits: Limits): TakeCall {
  return async (origin) => {
    const { headers, refusal } = await limits.check({ ...origin, route: undefined });
    return { allowed: refusal === undefined, headers, retryAfterMs: Number(headers['retry-after'] ?? 0) * 1000 };
  };
}
