import type { ServerHttp2Stream } from 'node:http2';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { TraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import type { Span, Tracer } from '@rollcall/platform/tracing/tracer.ts';
import type { Caller } from '../../admission/caller.ts';
import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import { serverAttributes } from '../rest/attempt-span.ts';
import { statusName } from './call-metrics.ts';
import { type CallHead, isGrpc } from './headers.ts';
import { parseMethodPath } from './routing.ts';
import type { GrpcTarget } from './targets.ts';

/** A call as a part of a trace, by the semantic conventions for RPC. */
export interface CallSpan {
  readonly traceId: string;
  /** Once it is known who calls, and whom. */
  admit(caller: Caller, target: GrpcTarget): void;
  /**
   * Begins a call to the backend; the one before, if any, was not accepted.
   *
   * @returns what the backend receives of the trace.
   */
  attempt(service: string, endpoint: Pick<Endpoint, 'origin'>): TraceContext;
  /** Nothing happens the second time. @param status undefined: the caller gave it up. */
  end(status: GrpcStatus | undefined): void;
}

/** @returns undefined for what is no call of gRPC. */
export function startCallSpan(tracer: Tracer, head: CallHead, { session }: ServerHttp2Stream): CallSpan | undefined {
  const method = parseMethodPath(head.path);
  if (method === undefined || head.method !== 'POST' || !isGrpc(head.contentType)) return undefined;
  const name = `${method.service}/${method.method}`;
  const called = { 'rpc.system.name': 'grpc', 'rpc.method': name };
  // Anybody may ask for anything: it has no name before somebody is found to serve it.
  const span = tracer.startServer('grpc', head.trace, {
    'rpc.system.name': 'grpc',
    'rpc.method_original': name,
    'client.address': session?.socket.remoteAddress,
    'user_agent.original': head.userAgent,
  });
  let attempt: Span | undefined;
  let isOver = false;

  return {
    traceId: span.traceId,
    admit(caller, target) {
      span.rename(name);
      span.set({ ...called, 'rollcall.client': caller.subject, 'rollcall.service': target.service });
    },
    attempt(service, { origin }) {
      if (attempt !== undefined) endSpan(attempt, grpcStatus.UNAVAILABLE, isFailure);
      const target = { ...serverAttributes(origin), 'rollcall.service': service };
      attempt = span.startClient(name, { ...called, ...target });
      return { traceparent: attempt.traceparent, tracestate: head.trace?.tracestate };
    },
    end(status) {
      if (isOver) return;
      isOver = true;
      if (attempt !== undefined) endSpan(attempt, status, isFailure);
      endSpan(span, status, isOurFailure);
    },
  };
}

function endSpan(span: Span, status: GrpcStatus | undefined, hasFailed: (status: GrpcStatus) => boolean): void {
  if (status === undefined) span.set({ 'rollcall.abandoned': true });
  else {
    span.set({ 'rpc.response.status_code': statusName(status) });
    if (hasFailed(status)) span.fail(statusName(status));
  }
  span.end();
}

/** For whoever called, everything but OK is one. */
function isFailure(status: GrpcStatus): boolean {
  return status !== grpcStatus.OK;
}

/** Of the server; the others are its caller's (semantic conventions, "gRPC"). */
const OURS: ReadonlySet<GrpcStatus> = new Set([
  grpcStatus.UNKNOWN,
  grpcStatus.DEADLINE_EXCEEDED,
  grpcStatus.UNIMPLEMENTED,
  grpcStatus.INTERNAL,
  grpcStatus.UNAVAILABLE,
  grpcStatus.DATA_LOSS,
]);

function isOurFailure(status: GrpcStatus): boolean {
  return OURS.has(status);
}
