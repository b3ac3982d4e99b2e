import { REGISTRY, type Targets } from '../discovery/targets.ts';
import type { BackendIdentity } from '../identity/backend-identity.ts';
import type { Limits } from '../policy/limits/limits.ts';
import type { GrpcTargets, IdentityHeaders, TakeCall } from './ports.ts';

/**
 * The registrations with the capability grpc, and the registry itself.
 *
 * @param registryOrigin where that offers gRPC; undefined: it is not passed on to.
 */
export function grpcTargets(targets: Targets, registryOrigin: string | undefined): GrpcTargets {
  return {
    find(serviceName) {
      if (serviceName === REGISTRY && registryOrigin !== undefined)
        return { service: REGISTRY, origin: registryOrigin };
      const target = targets.findRegistered(serviceName);
      return target?.capabilities.includes('grpc') === true
        ? { service: serviceName, origin: target.origin }
        : undefined;
    },
    known: () => targets.isComplete(),
  };
}

/** Calls count like requests. */
export function takeCall(limits: Limits): TakeCall {
  return async (caller) => {
    const { headers, refusal } = await limits.check({
      caller,
      remoteAddress: undefined,
      forwardedFor: undefined,
      route: undefined,
    });
    return { allowed: refusal === undefined, headers, retryAfterMs: Number(headers['retry-after'] ?? 0) * 1000 };
  };
}

export function identityHeadersOf(identity: BackendIdentity): IdentityHeaders {
  return async (caller, service) => {
    const flat = await identity.headersFor(caller, service);
    const names = flat.filter((_, index) => index % 2 === 0);
    return Object.fromEntries(names.map((name, index) => [name, flat[index * 2 + 1] ?? '']));
  };
}
