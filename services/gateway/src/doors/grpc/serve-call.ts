import type { ServerHttp2Stream } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { traceIdOf } from '@rollcall/platform/tracing/trace-context.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import { type AccessLog, rounded } from '../../access-log.ts';
import { answerTo } from '../../errors.ts';
import { requestIdOf } from '../trace-context.ts';
import { type AcceptContext, type Accepted, accept } from './accept.ts';
import { refuse } from './answer.ts';
import { attemptsAt, deadlineExceeded } from './attempts.ts';
import type { BackendPool } from './backend-pool.ts';
import { Forwarding } from './call.ts';
import { type CallMetrics, statusName } from './call-metrics.ts';
import { contextIn, startCallSpan } from './call-span.ts';
import { readCallHead } from './headers.ts';
import { isOwnHealth } from './health.ts';
import { faultOfRequest, refuseRequest } from './http-answer.ts';
import { answerHeaders, type KnownCall, knownCall } from './known-call.ts';
import { Refusal, refusalOf } from './refusal.ts';
import type { ReplayBudget } from './replay-budget.ts';

/** What serving calls needs. */
export interface Serving {
  readonly accepting: AcceptContext;
  /** Those under way... */
  readonly calls: Set<KnownCall>;
  /** ...and the questions after the gateway's own health. */
  readonly probes: Set<KnownCall>;
  readonly backends: BackendPool;
  readonly replayBudget: ReplayBudget;
  readonly callMetrics: CallMetrics;
  /** Undefined: calls are not traced. */
  readonly tracer: Tracer | undefined;
  /** Undefined: it is off. */
  readonly accessLog: AccessLog | undefined;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Node allows no longer timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Serves a call that has come. @returns to be called once its stream is closed. */
export function serveCall(serving: Serving, stream: ServerHttp2Stream, raw: readonly string[]): () => void {
  // A caller that is gone: `close` follows.
  stream.on('error', () => undefined);
  const head = readCallHead(raw);
  const known = knownCall({
    stream,
    head,
    span: serving.tracer === undefined ? undefined : startCallSpan(serving.tracer, head, stream),
    requestId: requestIdOf(head.requestId),
    beganAtMs: serving.clock.monotonicMs(),
  });
  const among = isOwnHealth(head) ? serving.probes : serving.calls;
  among.add(known);
  void serve(serving, known);
  return () => {
    among.delete(known);
    known.isClosed = true;
    known.leave?.();
    known.forwarded?.call.closed();
  };
}

async function serve(serving: Serving, known: KnownCall): Promise<void> {
  try {
    const admitted = await accept(serving.accepting, known);
    if (typeof admitted === 'object') run(serving, known, admitted);
    else if (admitted === 'given up') record(serving, known, undefined);
  } catch (error) {
    if (faultOfRequest(known.head) !== undefined) {
      record(serving, known, grpcStatus.UNKNOWN);
      return refuseRequest(known, answerTo(error));
    }
    const foreseen = refusalOf(error);
    if (foreseen === undefined) serving.log.error({ err: error }, 'gRPC call failed');
    const refusal =
      foreseen ?? new Refusal(grpcStatus.INTERNAL, 'The call failed for a reason of ours', { cause: error });
    record(serving, known, refusal.status);
    refuse(known.stream, refusal, answerHeaders(known));
  }
}

/**
 * For metrics, trace and log: how a call has ended.
 *
 * @param status undefined: its caller gave it up.
 */
function record(serving: Serving, known: KnownCall, status: GrpcStatus | undefined): void {
  const { head, span, requestId, beganAtMs, subject, service } = known;
  const ms = serving.clock.monotonicMs() - beganAtMs;
  serving.callMetrics.observe({ service, status, ms });
  span?.end(status);
  if (serving.accessLog === undefined) return;
  const given = contextIn(head.forwarded);
  serving.accessLog.write({
    reqId: requestId,
    trace_id: span?.traceId ?? (given === undefined ? undefined : traceIdOf(given.traceparent)),
    method: head.method,
    path: head.path,
    service: service === '' ? undefined : service,
    subject,
    result: status === undefined ? 'abandoned' : statusName(status),
    ms: rounded(ms),
  });
}

/** Passes an admitted call on, until it is over or its deadline is. */
function run(serving: Serving, known: KnownCall, admitted: Accepted): void {
  const { clock, backends, replayBudget } = serving;
  const { deadlineMs, token } = admitted;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const call = new Forwarding({
    downstream: known.stream,
    addedHeaders: answerHeaders(known),
    replayBudget,
    open: attemptsAt(backends, admitted, clock),
    onEnd(status) {
      isOver = true;
      clearTimeout(timer);
      record(serving, known, status);
    },
  });
  known.forwarded = { token, call };
  call.begin();
  if (isOver || deadlineMs === undefined) return;
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  if (leftMs <= TIMER_MAX_MS) timer = setTimeout(() => call.fail(deadlineExceeded()), leftMs);
}
