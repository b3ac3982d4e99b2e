import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { codedErrorBody, HttpError, serverError } from '@rollcall/platform/http/errors.ts';
import { hasScope } from '@rollcall/platform/http/scopes.ts';
import type { Authenticator, Caller } from '../../admission/caller.ts';
import type { Concurrency } from '../../admission/concurrency.ts';
import { errorCatalogue } from '../../errors.ts';
import { closeWhenSent, isClosed } from './answer.ts';
import type { OutgoingCall } from './attempts.ts';
import { type CallHead, isGrpc } from './headers.ts';
import { isOwnHealth, type OwnHealth } from './health.ts';
import type { KnownCall } from './known-call.ts';
import type { CallAllowance, GrpcMethod, GrpcTarget, GrpcTargets, IdentityHeaders, TakeCall } from './ports.ts';
import { Refusal } from './refusal.ts';
import { candidateNames, parseMethodPath, routeCall } from './routing.ts';
import { parseTimeout } from './timeout.ts';

/** A call that was let in. */
export interface Admitted extends OutgoingCall {
  readonly caller: Caller;
  readonly token: string;
}

export interface AdmissionContext {
  readonly authenticator: Authenticator;
  readonly take: TakeCall;
  readonly targets: GrpcTargets;
  readonly identityHeaders: IdentityHeaders;
  readonly bounds: { readonly calls: number };
  readonly health: OwnHealth;
  readonly calls: ReadonlySet<KnownCall>;
  /**
   * Who asks for the gateway's own health does so without a token, and counts against no limit of
   * calls.
   */
  readonly probes: ReadonlySet<KnownCall>;
  /** Of the calls of one subject. */
  readonly concurrency: Concurrency;
  /**
   * gRPC services that had a target, with the names that they may be found under; one that is
   * dropped for others comes back when it is asked for again.
   */
  readonly seen: Map<string, readonly string[]>;
}

const SEEN_MAX = 1000;

/**
 * Why a call goes no further: it is HTTP and no gRPC, it asked for the gateway's own health, or its
 * caller has gone.
 */
type Over = 'no call' | 'probe' | 'given up';

/**
 * Who calls, whether it may, and where it goes.
 *
 * @throws Refusal, GatewayError.
 */
export async function admit(context: AdmissionContext, known: KnownCall): Promise<Admitted | Over> {
  const { stream, head, span, requestId } = known;
  const error = errorOfOther(head);
  if (error !== undefined) {
    const { allowed, headers } = await takeOfAddress(context, known);
    answerOther(known, allowed ? error : rateLimited(), headers);
    return 'no call';
  }
  if (isOwnHealth(head)) {
    if (context.probes.size > context.bounds.calls) throw busy();
    context.health.answer(stream, parseMethodPath(head.path)?.method ?? '');
    return 'probe';
  }
  if (context.calls.size > context.bounds.calls) throw busy();
  const { token, caller, method, timeoutMs } = await identify(context, known);
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
  if (isClosed(stream)) return 'given up';
  const deadlineMs = timeoutMs === undefined ? undefined : known.beganAtMs + timeoutMs;
  return { head, caller, token, target, identity, requestId, span, deadlineMs };
}

function busy(): Refusal {
  return new Refusal(grpcStatus.UNAVAILABLE, 'This replica has as many calls as it can serve', { retryAfterMs: 1000 });
}

/** What a call says, before anything is believed of it. */
interface ReadCall {
  readonly method: GrpcMethod;
  readonly timeoutMs: number | undefined;
  readonly token: string;
}

/** @throws Refusal. */
function readCall(head: CallHead): ReadCall {
  const method = parseMethodPath(head.path);
  if (method === undefined) throw new Refusal(grpcStatus.UNIMPLEMENTED, 'The path names no gRPC method');
  if (head.repeated !== undefined) {
    throw new Refusal(grpcStatus.INVALID_ARGUMENT, `The metadata has ${head.repeated} more than once`);
  }
  return { method, timeoutMs: timeoutOf(head), token: bearerToken(head) };
}

interface Identified extends ReadCall {
  readonly caller: Caller;
}

/**
 * Who calls, counted against the limit. As over REST, a failure counts against the limit of the
 * address.
 */
async function identify(context: AdmissionContext, known: KnownCall): Promise<Identified> {
  let call: ReadCall;
  let caller: Caller;
  try {
    call = readCall(known.head);
    caller = await context.authenticator.authenticate(call.token);
  } catch (error) {
    const failed = await takeOfAddress(context, known);
    throw failed.allowed ? error : limited(known, failed);
  }
  known.subject = caller.subject;
  const allowance = await context.take({ caller, remoteAddress: undefined, forwardedFor: undefined });
  if (!allowance.allowed) throw limited(known, allowance);
  known.limitHeaders = allowance.headers;
  return { ...call, caller };
}

function takeOfAddress({ take }: AdmissionContext, { stream, head }: KnownCall): ReturnType<TakeCall> {
  const { forwardedFor } = head;
  return take({ caller: undefined, remoteAddress: stream.session?.socket.remoteAddress, forwardedFor });
}

function limited(known: KnownCall, { headers, retryAfterMs }: CallAllowance): Refusal {
  known.limitHeaders = headers;
  return new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'The rate limit is used up', { retryAfterMs });
}

/**
 * What is HTTP and no gRPC gets an answer of HTTP (grpc/doc/PROTOCOL-HTTP2.md); undefined: it is
 * gRPC.
 */
function errorOfOther({ method, contentType }: CallHead): HttpError | undefined {
  if (method !== 'POST') {
    const message = 'This port accepts gRPC calls, which are POST requests; send REST requests to the HTTP port';
    return serverError('METHOD_NOT_ALLOWED', { message, headers: { allow: 'POST' } });
  }
  if (isGrpc(contentType)) return undefined;
  const message =
    'This port accepts calls of the content type application/grpc, not gRPC-Web or JSON; send REST requests to the HTTP port';
  return serverError('UNSUPPORTED_TYPE', { message });
}

function rateLimited(): HttpError {
  const { status, message } = errorCatalogue.RATE_LIMITED;
  return new HttpError(status, 'RATE_LIMITED', { code: 'RATE_LIMITED', message });
}

function answerOther(
  { stream, head, requestId }: KnownCall,
  error: HttpError,
  headers: CallAllowance['headers'],
): void {
  if (isClosed(stream)) return;
  stream.resume();
  const body = Buffer.from(JSON.stringify(codedErrorBody(error)));
  stream.respond({
    ':status': error.statusCode,
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'x-request-id': requestId,
    ...error.headers,
    ...headers,
  });
  stream.end(head.method === 'HEAD' ? undefined : body);
  closeWhenSent(stream);
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
