import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { Limiter } from '@rollcall/platform/work/limiter.ts';
import { type AdmissionDeps, type Asked, admit } from '../../admission/admission.ts';
import { bearerToken, unauthenticated } from '../../admission/bearer.ts';
import type { Caller } from '../../admission/caller.ts';
import { GatewayError } from '../../errors.ts';
import { isClosed } from './answer.ts';
import type { OutgoingCall } from './attempts.ts';
import type { CallHead } from './headers.ts';
import { isOwnHealth, type OwnHealth } from './health.ts';
import { faultOfRequest } from './http-answer.ts';
import type { KnownCall } from './known-call.ts';
import type { GrpcMethod, GrpcTarget, GrpcTargets, IdentityHeaders } from './ports.ts';
import { Refusal } from './refusal.ts';
import { candidateNames, parseMethodPath, routeCall, scopesOfCall } from './routing.ts';
import { parseTimeout } from './timeout.ts';

/** A call that was let in. */
export interface Accepted extends OutgoingCall {
  readonly caller: Caller;
  readonly token: string;
}

export interface AcceptContext {
  readonly admission: AdmissionDeps;
  readonly targets: GrpcTargets;
  readonly identityHeaders: IdentityHeaders;
  /** More get UNAVAILABLE. */
  readonly callsAtOnce: number;
  readonly health: OwnHealth;
  readonly calls: ReadonlySet<KnownCall>;
  /**
   * Who asks for the gateway's own health does so without a token, and counts against no limit of
   * calls.
   */
  readonly probes: ReadonlySet<KnownCall>;
  /** Of the calls of one subject. */
  readonly concurrency: Pick<Limiter, 'tryEnter'>;
  /**
   * gRPC services that had a target, with the names that they may be found under; one that is
   * dropped for others comes back when it is asked for again.
   */
  readonly seen: Map<string, readonly string[]>;
}

const SEEN_MAX = 1000;

/** Why a call goes no further: it asked for the gateway's own health, or its caller has gone. */
type Over = 'probe' | 'given up';

/**
 * Who calls, whether it may, and where it goes.
 *
 * @throws Refusal, GatewayError; HttpError for what is HTTP and no gRPC.
 */
export async function accept(context: AcceptContext, known: KnownCall): Promise<Accepted | Over> {
  const { stream, head, span, requestId } = known;
  const isProbe = isOwnHealth(head);
  if ((isProbe ? context.probes : context.calls).size > context.callsAtOnce) throw busy();
  if (isProbe && faultOfRequest(head) === undefined) {
    context.health.answer(stream, parseMethodPath(head.path)?.method ?? '');
    return 'probe';
  }
  const { holder, asked } = await admit(context.admission, arrivedCall(known), () => readCall(head));
  if (holder === undefined) throw unauthenticated();
  if (known.isClosed) return 'given up';
  const { caller, token } = holder;
  known.leave = context.concurrency.tryEnter(caller.subject);
  if (known.leave === undefined) {
    const message = 'The caller has as many calls under way as it may have';
    throw new Refusal(grpcStatus.RESOURCE_EXHAUSTED, message, { retryAfterMs: 1000 });
  }
  const target = route(context, asked);
  known.service = target.service;
  span?.admit(caller, target);
  const identity = await context.identityHeaders(caller, target.service);
  await target.endpoints.refresh();
  if (isClosed(stream)) return 'given up';
  const deadlineMs = asked.timeoutMs === undefined ? undefined : known.beganAtMs + asked.timeoutMs;
  return { head, caller, token, target, identity, requestId, span, deadlineMs };
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
      known.limitHeaders = headers;
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

function route({ seen, targets }: AcceptContext, { method, override }: AskedCall): GrpcTarget {
  const grpcService = method.service;
  const known = seen.get(grpcService);
  const candidates = known ?? candidateNames(grpcService);
  const target = routeCall({ grpcService, candidates, override, seenBefore: known !== undefined }, targets);
  if (override === undefined && known === undefined) {
    seen.set(grpcService, candidates);
    if (seen.size > SEEN_MAX) for (const oldest of seen.keys().take(1)) seen.delete(oldest);
  }
  return target;
}
