import type { ServerHttp2Stream } from 'node:http2';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { LinkedList } from '@rollcall/platform/linked-list.ts';
import { type Authenticator, type Caller, hasScope } from '../policy/caller.ts';
import type { Concurrency } from '../policy/concurrency.ts';
import type { OutgoingCall } from './attempts.ts';
import { type CallHead, isGrpc } from './headers.ts';
import { isOwnHealth, type OwnHealth } from './health.ts';
import type { KnownCall } from './known-call.ts';
import type { CallAllowance, GrpcTarget, GrpcTargets, IdentityHeaders, TakeCall } from './ports.ts';
import { Refusal } from './refusal.ts';
import { candidateNames, parseMethodPath, routeCall } from './routing.ts';
import { parseTimeout } from './timeout.ts';

/** A call that was let in. */
export interface Admitted extends OutgoingCall {
  readonly token: string;
}

export interface AdmissionContext {
  readonly authenticator: Authenticator;
  readonly take: TakeCall;
  readonly targets: GrpcTargets;
  readonly identityHeaders: IdentityHeaders;
  readonly bounds: { readonly calls: number };
  readonly health: OwnHealth;
  readonly calls: LinkedList<KnownCall>;
  /** Who asks for the gateway's own health does so without a token, and takes nobody's place. */
  readonly probes: LinkedList<KnownCall>;
  /** Of the calls of one subject. */
  readonly concurrency: Concurrency;
  /**
   * gRPC services that had a target, with the names that they may be found under; one that is dropped for others comes back when it is
   * asked for again.
   */
  readonly seen: Map<string, readonly string[]>;
}

const SEEN_MAX = 1000;

/** Why a call goes no further: it is HTTP and no gRPC, it asked for the gateway's own health, or its caller has gone. */
type Over = 'no call' | 'probe' | 'given up';

/**
 * Who calls, whether it may, and where it goes.
 *
 * @throws Refusal, GatewayError.
 */
export async function admit(context: AdmissionContext, known: KnownCall): Promise<Admitted | Over> {
  const { stream, head, span, requestId } = known;
  if (answerOther(stream, head)) return 'no call';
  const method = parseMethodPath(head.path);
  if (method === undefined) throw new Refusal(grpcStatus.UNIMPLEMENTED, 'The path names no gRPC method');
  if (head.repeated !== undefined) {
    throw new Refusal(grpcStatus.INVALID_ARGUMENT, `The metadata has ${head.repeated} more than once`);
  }
  if (isOwnHealth(head)) {
    if (context.probes.size > context.bounds.calls) throw busy();
    context.health.answer(stream, method.method);
    return 'probe';
  }
  if (context.calls.size > context.bounds.calls) throw busy();
  const timeoutMs = timeoutOf(head);
  const { token, caller } = await identify(context, known);
  if (known.isClosed) return 'given up';
  known.leave = context.concurrency.enter(caller.subject);
  if (known.leave === undefined) {
    const message = 'The caller has as many calls under way as it may have';
    throw new Refusal(grpcStatus.RESOURCE_EXHAUSTED, message, { retryAfterMs: 1000 });
  }
  const target = route(context, method.service, head.override);
  known.service = target.service;
  span?.admit(caller, target);
  const missing = target.scopesFor?.(method).find((scope) => !hasScope(caller, scope));
  if (missing !== undefined) {
    throw new Refusal(grpcStatus.PERMISSION_DENIED, `The token lacks the scope ${missing}`);
  }
  const identity = await context.identityHeaders(caller, target.service);
  await target.endpoints.refresh();
  if (stream.destroyed || stream.closed) return 'given up';
  const deadlineMs = timeoutMs === undefined ? undefined : known.beganAtMs + timeoutMs;
  return { head, token, target, identity, requestId, span, deadlineMs };
}

function busy(): Refusal {
  return new Refusal(grpcStatus.UNAVAILABLE, 'This replica has as many calls as it can serve', { retryAfterMs: 1000 });
}

interface Identified {
  readonly token: string;
  readonly caller: Caller;
}

/** Who calls, counted against the limit. As over REST, a failure counts against the limit of the address. */
async function identify({ authenticator, take }: AdmissionContext, known: KnownCall): Promise<Identified> {
  const { stream, head } = known;
  let token: string;
  let caller: Caller;
  try {
    token = bearerToken(head);
    caller = await authenticator.authenticate(token);
  } catch (error) {
    const { forwardedFor } = head;
    const failed = await take({ caller: undefined, remoteAddress: stream.session?.socket.remoteAddress, forwardedFor });
    throw failed.allowed ? error : limited(known, failed);
  }
  known.subject = caller.subject;
  const allowance = await take({ caller, remoteAddress: undefined, forwardedFor: undefined });
  if (!allowance.allowed) throw limited(known, allowance);
  known.limitHeaders = allowance.headers;
  return { token, caller };
}

function limited(known: KnownCall, { headers, retryAfterMs }: CallAllowance): Refusal {
  known.limitHeaders = headers;
  return new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'The rate limit is used up', { retryAfterMs });
}

/** What is HTTP and no gRPC gets an answer of HTTP (grpc/doc/PROTOCOL-HTTP2.md). */
function answerOther(stream: ServerHttp2Stream, { method, contentType }: CallHead): boolean {
  const status = method !== 'POST' ? 405 : isGrpc(contentType) ? undefined : 415;
  if (status === undefined) return false;
  stream.resume();
  stream.respond({ ':status': status, ...(status === 405 ? { allow: 'POST' } : {}) }, { endStream: true });
  return true;
}

function timeoutOf({ timeout }: CallHead): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = parseTimeout(timeout);
  if (ms === undefined) throw new Refusal(grpcStatus.INVALID_ARGUMENT, 'grpc-timeout is no timeout');
  return ms;
}

function bearerToken({ authorization = '' }: CallHead): string {
  const token = /^Bearer +([\w.~+/=-]+)$/i.exec(authorization)?.[1];
  if (token === undefined) throw new Refusal(grpcStatus.UNAUTHENTICATED, 'A bearer token is required');
  return token;
}

function route({ seen, targets }: AdmissionContext, grpcService: string, override: string | undefined): GrpcTarget {
  const known = seen.get(grpcService);
  const candidates = known ?? candidateNames(grpcService);
  const target = routeCall({ grpcService, candidates, override, seenBefore: known !== undefined }, targets);
  if (override === undefined && known === undefined) {
    seen.set(grpcService, candidates);
    if (seen.size > SEEN_MAX) for (const oldest of seen.keys().take(1)) seen.delete(oldest);
  }
  return target;
}
