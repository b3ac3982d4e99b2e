import type { IncomingMessage } from 'node:http';
import { serverError } from '@rollcall/platform/http/errors.ts';
import { GatewayError } from '../../errors.ts';
import type { Target, Targets } from '../../upstream/discovery/targets.ts';
import { bodyLimitFor, type Destination, METHODS } from '../../upstream/routing/table.ts';

interface FindTargetDeps {
  readonly targets: Targets;
  /** Of a request's body where the operation has no other, in bytes. */
  readonly bodyLimit: number;
}

interface AdmittedRequest {
  readonly request: Pick<IncomingMessage, 'method' | 'headers'>;
  /** Undefined: no route has the path. */
  readonly destination: Destination | undefined;
}

interface FoundTarget {
  readonly target: Target;
  readonly bodyLimit: number;
}

/**
 * @returns the service that a request is for, and what its body may have.
 * @throws GatewayError, HttpError where it has no such method, or there is none.
 */
export function findTarget(
  { targets, bodyLimit }: FindTargetDeps,
  { request, destination }: AdmittedRequest,
): FoundTarget {
  if (destination === undefined) throw new GatewayError('ROUTE_NOT_FOUND');
  const { rule, service } = destination;
  const { method = '' } = request;
  const methods = rule?.methods ?? METHODS;
  if (!methods.includes(method)) {
    const allow = methods.join(', ');
    throw serverError('METHOD_NOT_ALLOWED', { message: `The route has only ${allow}`, headers: { allow } });
  }
  const most = bodyLimitFor(destination, method, bodyLimit);
  if (Number(request.headers['content-length'] ?? 0) > most) throw new GatewayError('BODY_TOO_LARGE');
  const target = targets.find(service);
  if (target !== undefined) return { target, bodyLimit: most };
  if (!targets.isComplete()) throw new GatewayError('DISCOVERY_UNAVAILABLE');
  if (rule?.isPromised !== true) throw new GatewayError('SERVICE_NOT_FOUND', { details: { service } });
  const message = `The path is answered by the service ${service}, of which no instance is registered; try again`;
  throw new GatewayError('UPSTREAM_UNAVAILABLE', { message, details: { service } });
}
