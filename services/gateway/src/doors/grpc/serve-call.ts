import type { ServerHttp2Stream } from 'node:http2';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { requestIdOf } from '@rollcall/platform/http/request-id.ts';
import { rounded } from '../../access-log.ts';
import { answerTo } from '../../errors.ts';
import { traceIdFor } from '../trace-context.ts';
import { type Accepted, accept } from './accept.ts';
import { faultOfRequest, refuse, refuseRequest } from './answer.ts';
import { attemptsAt, deadlineExceeded } from './attempts.ts';
import { Forwarding } from './call.ts';
import { statusName } from './call-metrics.ts';
import { startCallSpan } from './call-span.ts';
import { readCallHead } from './headers.ts';
import { isOwnHealth } from './health.ts';
import { Refusal, refusalOf } from './refusal.ts';
import { parseMethodPath } from './routing.ts';
import type { KnownCall, Serving } from './serving.ts';

/** Node allows no longer timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Serves a call that has come. @returns to be called once its stream is closed. */
export function serveCall(serving: Serving, stream: ServerHttp2Stream, raw: readonly string[]): () => void {
  // A caller that is gone: `close` follows.
  stream.on('error', () => undefined);
  const head = readCallHead(raw);
  if (isOwnHealth(head) && faultOfRequest(head) === undefined) {
    serving.health.answer(stream, parseMethodPath(head.path)?.method ?? '');
    return () => undefined;
  }
  const { tracer, clock } = serving.deps;
  const requestId = requestIdOf(head.requestId);
  const known: KnownCall = {
    stream,
    head,
    span: tracer === undefined ? undefined : startCallSpan(tracer, head, stream),
    requestId,
    beganAtMs: clock.monotonicMs(),
    service: '',
    answerHeaders: { 'x-request-id': requestId },
    readBytes: 0,
    stuckMs: 0,
  };
  serving.calls.add(known);
  void serve(serving, known);
  return () => {
    serving.calls.delete(known);
    known.leave?.();
    known.forwarded?.call.closed();
  };
}

async function serve(serving: Serving, known: KnownCall): Promise<void> {
  try {
    const accepted = await accept(serving, known);
    if (accepted === undefined) record(serving, known, undefined);
    else run(serving, known, accepted);
  } catch (error) {
    if (faultOfRequest(known.head) !== undefined) {
      record(serving, known, grpcStatus.UNKNOWN);
      return refuseRequest(known, answerTo(error));
    }
    const foreseen = refusalOf(error);
    if (foreseen === undefined) serving.deps.log.error({ err: error }, 'gRPC call failed');
    const refusal =
      foreseen ?? new Refusal(grpcStatus.INTERNAL, 'The call failed for a reason of ours', { cause: error });
    record(serving, known, refusal.status);
    refuse(known.stream, refusal, known.answerHeaders);
  }
}

/**
 * For metrics, trace and log: how a call has ended.
 *
 * @param status undefined: its caller gave it up.
 */
function record(serving: Serving, known: KnownCall, status: GrpcStatus | undefined): void {
  const { head, span, requestId, beganAtMs, subject, service } = known;
  const { clock, accessLog } = serving.deps;
  const ms = clock.monotonicMs() - beganAtMs;
  serving.callMetrics.observe({ service, status, ms });
  span?.end(status);
  accessLog?.write({
    reqId: requestId,
    trace_id: traceIdFor(span, head.trace),
    method: head.method,
    path: head.path,
    service: service === '' ? undefined : service,
    subject,
    result: status === undefined ? 'abandoned' : statusName(status),
    ms: rounded(ms),
  });
}

/** Passes an admitted call on, until it is over or its deadline is. */
function run(serving: Serving, known: KnownCall, accepted: Accepted): void {
  const { deadlineMs, token } = accepted;
  let timer: NodeJS.Timeout | undefined;
  const call = new Forwarding(known, {
    open: attemptsAt(serving, known, accepted),
    onEnd(status) {
      clearTimeout(timer);
      record(serving, known, status);
    },
  });
  known.forwarded = { token, call };
  if (deadlineMs !== undefined) {
    const leftMs = Math.max(0, deadlineMs - serving.deps.clock.monotonicMs());
    if (leftMs <= TIMER_MAX_MS) timer = setTimeout(() => call.fail(deadlineExceeded()), leftMs);
  }
  call.begin();
}
