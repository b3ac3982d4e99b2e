import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { grpcOperation } from '@rollcall/platform/http/scopes.ts';
import { REGISTRY } from '../../upstream/discovery/targets.ts';
import { Refusal } from './refusal.ts';
import type { GrpcTargets } from './targets.ts';

/** A method of a gRPC service, as it stands in the path. */
export interface GrpcMethod {
  /** `package.Service` */
  readonly service: string;
  readonly method: string;
}

/** grpc/doc/server-reflection.md */
const REFLECTION = /^grpc\.reflection\.v1(?:alpha)?\.ServerReflection$/;
/** Of the registry's own gRPC services. */
const REGISTRY_PACKAGE = 'rollcall.registry.';
const PATH = /^\/([A-Za-z_][\w.]{0,511})\/([A-Za-z_]\w{0,255})$/;
/** `v1`, `v1beta2`: says nothing about whose package it is. */
const VERSION = /^v\d+(?:(?:alpha|beta|p)\d*)*$/;

/** @returns undefined for what is not `/<package.Service>/<Method>`. */
export function parseMethodPath(path: string): GrpcMethod | undefined {
  const [, service, method] = PATH.exec(path) ?? [];
  return service === undefined || method === undefined ? undefined : { service, method };
}

/**
 * The names of registrations that a gRPC service may be found under, the best first. Of
 * `acme.shop.v1.Cart`: the service in full, its package (`acme.shop.v1`), the package without
 * version (`acme.shop`), the package's last label (`shop`), and its first (`acme`). The registry's
 * own package is the registry's, whoever registers a name that would be better; so is reflection,
 * which every service may have, unless the caller names one.
 */
export function candidateNames(grpcService: string): readonly string[] {
  if (grpcService.startsWith(REGISTRY_PACKAGE) || REFLECTION.test(grpcService)) return [REGISTRY];
  const labels = grpcService.split('.');
  const packageLabels = labels.slice(0, -1);
  const unversioned = packageLabels.filter((label) => !VERSION.test(label));
  const candidates = [
    grpcService,
    packageLabels.join('.'),
    unversioned.join('.'),
    unversioned.at(-1) ?? '',
    unversioned[0] ?? '',
  ];
  return [...new Set(candidates)].filter((name) => name !== '');
}

/**
 * @param override the registration that the caller names.
 * @returns what a caller's token must have: the scopes of the registry's operations. Its health and
 * reflection are for everybody.
 */
export function scopesOfCall({ service, method }: GrpcMethod, override: string | undefined): readonly string[] {
  const goesToRegistry = override === undefined || override === REGISTRY;
  const scope = goesToRegistry && service.startsWith(REGISTRY_PACKAGE) ? grpcOperation(method)?.scope : undefined;
  return scope === undefined ? [] : [scope];
}

/** What decides where a call goes. */
export interface RouteInput {
  readonly grpcService: string;
  /** The registration that the caller named in `rollcall-service`; it wins. */
  readonly override: string | undefined;
  /** The gRPC services that had a target not long ago. */
  readonly seen: Set<string>;
}

const SEEN_MAX = 1000;
const RETRY = { retryAfterMs: 1000 };

/**
 * Finds the registration that serves a call.
 *
 * @throws Refusal UNAVAILABLE where it may be there a moment later: what is registered is not known
 * yet, the registration that was named is not there, or the one that served such calls is gone.
 * UNIMPLEMENTED where no registration was ever meant.
 */
export function routeCall<Target>({ grpcService, override, seen }: RouteInput, targets: GrpcTargets<Target>): Target {
  for (const name of override === undefined ? candidateNames(grpcService) : [override]) {
    const target = targets.find(name);
    if (target === undefined) continue;
    if (override === undefined) remember(grpcService, seen);
    return target;
  }
  if (!targets.known())
    throw new Refusal(grpcStatus.UNAVAILABLE, 'The registrations are not known yet; try again', RETRY);
  if (override !== undefined) {
    const message = `No service '${override}' with the capability grpc is registered`;
    throw new Refusal(grpcStatus.UNAVAILABLE, message, RETRY);
  }
  if (seen.has(grpcService))
    throw new Refusal(grpcStatus.UNAVAILABLE, `'${grpcService}' is not registered any more`, RETRY);
  throw new Refusal(grpcStatus.UNIMPLEMENTED, `No registered service is known to serve '${grpcService}'`);
}

function remember(grpcService: string, seen: Set<string>): void {
  seen.add(grpcService);
  if (seen.size > SEEN_MAX) for (const oldest of seen.values().take(1)) seen.delete(oldest);
}
