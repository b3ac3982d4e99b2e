import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { type Asked, admit } from '../../admission/admission.ts';
import { bearerToken, unauthenticated } from '../../admission/bearer.ts';
import { GatewayError } from '../../errors.ts';
import { faultOfRequest, isClosed } from './answer.ts';
import type { CallHead } from './headers.ts';
import { Refusal } from './refusal.ts';
import { type GrpcMethod, parseMethodPath, routeCall, scopesOfCall } from './routing.ts';
import type { KnownCall, Serving } from './serving.ts';
import type { GrpcTarget } from './targets.ts';
import { parseTimeout } from './timeout.ts';

/** A call that was let in. */
export interface Accepted {
  readonly token: string;
  readonly target: GrpcTarget;
  /** By which the backend knows who calls: names and values in turn. */
  readonly identity: readonly string[];
  /** Of the monotonic clock. */
  readonly deadlineMs: number | undefined;
}

/**
 * Who calls, whether it may, and where it goes.
 *
 * @returns undefined: its caller has gone.
 * @throws Refusal, GatewayError; HttpError for what is HTTP and no gRPC.
 */
export async function accept(
  { deps, limits, calls, concurrency, seen }: Serving,
  known: KnownCall,
): Promise<Accepted | undefined> {
  const { stream, head, span } = known;
  if (calls.size > limits.calls) throw busy();
  const admission = { authenticator: deps.authenticator, limits: deps.requestLimits };
  const { holder, asked } = await admit(admission, arrivedCall(known), () => readCall(head));
  if (holder === undefined) throw unauthenticated();
  if (isClosed(stream)) return undefined;
  const { caller, token } = holder;
  known.leave = concurrency.tryEnter(caller.subject);
  if (known.leave === undefined) {
    const message = 'The caller has as many calls under way as it may have';
    throw new Refusal(grpcStatus.RESOURCE_EXHAUSTED, message, { retryAfterMs: 1000 });
  }
  const { method, override, timeoutMs } = asked;
  const target = routeCall({ grpcService: method.service, override, seen }, deps.targets);
  known.service = target.service;
  span?.admit(caller, target);
  const identity = await deps.identity.headersFor(caller, target.service);
  await target.endpoints.refresh();
  if (isClosed(stream)) return undefined;
  const deadlineMs = timeoutMs === undefined ? undefined : known.beganAtMs + timeoutMs;
  return { token, target, identity, deadlineMs };
}

function busy(): GatewayError {
  const message = 'This replica has as many calls as it can serve';
  return new GatewayError('TOO_MANY_CONNECTIONS', { message, headers: { 'retry-after': '1' } });
}

function arrivedCall(known: KnownCall): Parameters<typeof admit>[1] {
  const { stream, head } = known;
  return {
    remoteAddress: stream.session?.socket.remoteAddress,
    forwardedFor: head.forwardedFor,
    // Of several none counts: it is refused for that.
    token: () => (head.repeated === undefined ? bearerToken(head.authorization) : undefined),
    onCounted({ caller, headers }) {
      known.subject = caller?.subject;
      known.answerHeaders = { ...headers, 'x-request-id': known.requestId };
    },
  };
}

interface AskedCall extends Asked {
  readonly method: GrpcMethod;
  /** The registration that the caller names, whatever the path says. */
  readonly override: string | undefined;
  readonly timeoutMs: number | undefined;
}

/** @throws GatewayError; HttpError for what is HTTP and no gRPC. */
function readCall(head: CallHead): AskedCall {
  const fault = faultOfRequest(head);
  if (fault !== undefined) throw fault;
  const method = parseMethodPath(head.path);
  if (method === undefined) throw new GatewayError('ROUTE_NOT_FOUND', { message: 'The path names no gRPC method' });
  if (head.repeated !== undefined) throw invalid(`The metadata has ${head.repeated} more than once`);
  const override = overrideOf(head);
  return { method, override, timeoutMs: timeoutOf(head), scopes: scopesOfCall(method, override) };
}

/** Names beyond ASCII come percent-encoded, like those in the paths of REST. */
function overrideOf({ override }: CallHead): string | undefined {
  if (override === undefined) return undefined;
  try {
    if (/^[!-~]+$/.test(override)) return decodeURIComponent(override);
  } catch {
    // As below.
  }
  throw invalid('The metadata rollcall-service must be the name of a service, percent-encoded');
}

function timeoutOf({ timeout }: CallHead): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = parseTimeout(timeout);
  if (ms === undefined) throw invalid('grpc-timeout is no timeout');
  return ms;
}

function invalid(message: string): GatewayError {
  return new GatewayError('INVALID_REQUEST', { message });
}
